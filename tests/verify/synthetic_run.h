// A record of any size that is computed, not stored: for reports of long runs. Versions are causal;
// times come from a pipeline that is simulated task by task.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/philox.h"
#include "tests/verify/memory_reader.h"
#include "verify/comparison.h"
#include "verify/verdict.h"

namespace verbatim {

struct SyntheticShape {
  std::int64_t subnets = 60;
  int positions = 14;  ///< stem and head have one layer, the others `candidates`
  int candidates = 4;
  int stages = 3;
  int microbatches = 2;
  float spread = 0.25F;    ///< of the losses
  std::int64_t delay = 0;  ///< of stem and head
};

/// The layers of position p are p · candidates …; every layer is versioned.
class SyntheticReader : public MemoryReader {
 public:
  explicit SyntheticReader(const SyntheticShape& shape) : shape_(shape) {
    std::vector<std::int64_t> last_user(
        static_cast<std::size_t>(shape.positions) * static_cast<std::size_t>(shape.candidates), -1);
    for (std::int64_t seq = 0; seq < shape.subnets; ++seq) {
      for (int position = 0; position < shape.positions; ++position) {
        const std::int32_t layer = LayerAt(seq, position);
        predecessors_.push_back(last_user[static_cast<std::size_t>(layer)]);
        last_user[static_cast<std::size_t>(layer)] = seq;
      }
    }
    stage_free_ns_.resize(static_cast<std::size_t>(shape.stages), 0);
    for (std::int64_t seq = 0; seq < shape.subnets; ++seq) Simulate();
  }

  Result<RunInfo> Run() const override {
    RunInfo run;
    run.tool_version = "0.1.0";
    run.policy = "causal";
    run.record_level = "weights";
    run.device = "cpu";
    run.stages = shape_.stages;
    run.in_flight = 4;
    run.subnets_planned = shape_.subnets;
    run.started_utc = "2026-01-31T12:00:00Z";
    run.ended_utc = "2026-01-31T12:00:05Z";
    run.status = RunStatus::kComplete;
    return run;
  }
  Result<std::vector<EnvironmentRow>> Environment() const override {
    return std::vector<EnvironmentRow>{{"cpu.model", "Sample <CPU>"},
                                       {"info.host", "one"},
                                       {"libtorch.version", "2.11.0"},
                                       {"threads_per_stage", "1"}};
  }
  Result<std::vector<LayerRow>> Layers() const override {
    std::vector<LayerRow> layers;
    for (int position = 0; position < shape_.positions; ++position) {
      for (int candidate = 0; candidate < shape_.candidates; ++candidate) {
        LayerRow layer;
        layer.layer = position * shape_.candidates + candidate;
        layer.position = position;
        layer.candidate = candidate;
        layer.name = position == 0                      ? "stem"
                     : position == shape_.positions - 1 ? "head"
                                                        : "block" + std::to_string(position - 1);
        if (candidate > 0 || (position > 0 && position < shape_.positions - 1)) {
          layer.name += "." + std::to_string(candidate);
        }
        layer.versioned = true;
        layers.push_back(std::move(layer));
      }
    }
    return layers;
  }
  Result<std::int64_t> SubnetCount() const override { return shape_.subnets; }
  Result<std::int64_t> AccessCount() const override { return shape_.subnets * shape_.positions; }
  Result<std::unique_ptr<SubnetCursor>> Subnets(const ReadOptions& options) const override {
    return std::make_unique<Cursor>(*this, options);
  }
  Result<std::optional<SubnetRow>> Subnet(std::int64_t seq,
                                          const ReadOptions& options) const override {
    if (seq < 0 || seq >= shape_.subnets) return std::nullopt;
    return Row(seq, options);
  }
  Result<std::vector<LineageRow>> Lineage(std::int32_t) const override {
    return std::vector<LineageRow>{};
  }
  Result<std::vector<EvaluationRow>> Evaluations() const override {
    return std::vector<EvaluationRow>{};
  }
  Result<std::vector<std::string>> IntegrityProblems() const override {
    return std::vector<std::string>{};
  }

  std::int64_t Predecessor(std::int64_t seq, int position) const {
    return predecessors_[static_cast<std::size_t>(seq * shape_.positions + position)];
  }
  /// Every subnet uses stem and head.
  std::int64_t ReadPredecessor(std::int64_t seq, int position) const {
    const bool is_end = position == 0 || position == shape_.positions - 1;
    if (!is_end) return Predecessor(seq, position);
    return std::max<std::int64_t>(seq - 1 - shape_.delay, -1);
  }
  const SyntheticShape& shape() const { return shape_; }

 private:
  class Cursor : public SubnetCursor {
   public:
    Cursor(const SyntheticReader& reader, const ReadOptions& options)
        : reader_(reader), options_(options) {}
    Result<const SubnetRow*> Next() override {
      if (next_ == reader_.shape_.subnets) return nullptr;
      row_ = reader_.Row(next_++, options_);
      return &row_;
    }

   private:
    const SyntheticReader& reader_;
    ReadOptions options_;
    std::int64_t next_ = 0;
    SubnetRow row_;
  };

  std::uint32_t Random(std::int64_t seq, std::uint32_t b) const {
    return Philox4x32({{static_cast<std::uint32_t>(seq), b, 0, 0}}, 1, 2).word[0];
  }
  std::int32_t LayerAt(std::int64_t seq, int position) const {
    const bool is_block = position > 0 && position < shape_.positions - 1;
    const std::uint32_t choice = is_block ? Random(seq, static_cast<std::uint32_t>(position)) %
                                                static_cast<std::uint32_t>(shape_.candidates)
                                          : 0;
    return position * shape_.candidates + static_cast<std::int32_t>(choice);
  }
  int StageOf(int position) const { return position * shape_.stages / shape_.positions; }

  /// Forwards go down the stages, backwards up; a stage takes its tasks in the order given.
  void Simulate() {
    std::vector<ActivityRow> tasks;
    const auto work = [&](int stage, int microbatch, Phase phase, std::int64_t ready_ns,
                          std::int64_t cost_ns) {
      std::int64_t& free_ns = stage_free_ns_[static_cast<std::size_t>(stage)];
      const std::int64_t begin_ns = std::max(free_ns, ready_ns);
      free_ns = begin_ns + cost_ns;
      tasks.push_back({stage, microbatch, phase, begin_ns, free_ns});
      return free_ns;
    };
    for (int microbatch = 0; microbatch < shape_.microbatches; ++microbatch) {
      std::int64_t ready_ns = 0;
      for (int stage = 0; stage < shape_.stages; ++stage) {
        ready_ns = work(stage, microbatch, Phase::kForward, ready_ns, 2'000'000 + 300'000 * stage);
      }
      for (int stage = shape_.stages - 1; stage >= 0; --stage) {
        ready_ns = work(stage, microbatch, Phase::kBackward, ready_ns, 4'000'000);
        if (microbatch == shape_.microbatches - 1) {
          work(stage, microbatch, Phase::kUpdate, ready_ns, 200'000);
        }
      }
    }
    activities_.push_back(std::move(tasks));
  }

  SubnetRow Row(std::int64_t seq, const ReadOptions& options) const {
    SubnetRow row;
    row.seq = seq;
    const auto decay = std::exp(-3.0F * static_cast<float>(seq) /
                                static_cast<float>(std::max<std::int64_t>(1, shape_.subnets)));
    const auto noise = static_cast<float>(Random(seq, 0)) / 4294967296.0F;
    row.loss_bits = std::bit_cast<std::uint32_t>(0.5F + 2.0F * decay + shape_.spread * noise);
    for (int position = 0; options.accesses && position < shape_.positions; ++position) {
      AccessRow access;
      access.layer = LayerAt(seq, position);
      access.base_seq = Predecessor(seq, position);
      access.read_seq = ReadPredecessor(seq, position);
      access.stage = StageOf(position);
      row.accesses.push_back(access);
    }
    if (options.activities) row.activities = activities_[static_cast<std::size_t>(seq)];
    return row;
  }

  SyntheticShape shape_;
  std::vector<std::int64_t> predecessors_;  ///< subnet × position
  std::vector<std::int64_t> stage_free_ns_;
  std::vector<std::vector<ActivityRow>> activities_;
};

/// What a comparison of two such records finds where subnet `origin` alone computed otherwise: it,
/// and all that follows from it.
inline Comparison SyntheticComparison(const SyntheticReader& reader, Difference origin) {
  const SyntheticShape& shape = reader.shape();
  const std::int64_t origin_seq = *origin.seq;
  Comparison comparison;
  comparison.subnets_compared = shape.subnets;
  comparison.accesses_compared = shape.subnets * shape.positions;
  EqualityMap& map = comparison.map;
  map.positions = shape.positions;
  map.subnets_per_column =
      (shape.subnets + EqualityMap::kColumnsMax - 1) / EqualityMap::kColumnsMax;
  map.cells.resize(static_cast<std::size_t>((shape.subnets + map.subnets_per_column - 1) /
                                            map.subnets_per_column * shape.positions));
  std::vector<bool> differs(static_cast<std::size_t>(shape.subnets));
  for (std::int64_t seq = 0; seq < shape.subnets; ++seq) {
    bool tainted = false;
    for (int position = 0; position < shape.positions; ++position) {
      const std::int64_t writer = reader.Predecessor(seq, position);
      tainted |= writer >= 0 && differs[static_cast<std::size_t>(writer)];
    }
    const Equality equality = seq == origin_seq ? Equality::kOrigin
                              : tainted         ? Equality::kTainted
                                                : Equality::kEqual;
    differs[static_cast<std::size_t>(seq)] = equality != Equality::kEqual;
    for (int position = 0; position < shape.positions; ++position) {
      Equality& cell = map.cells[static_cast<std::size_t>(
          seq / map.subnets_per_column * shape.positions + position)];
      cell = std::max(cell, equality);
    }
    if (equality == Equality::kEqual) ++comparison.subnets_equal;
    if (equality == Equality::kTainted) {
      ++comparison.tainted_count;
      if (!comparison.tainted.empty() && comparison.tainted.back().last == seq - 1) {
        comparison.tainted.back().last = seq;
      } else {
        comparison.tainted.push_back({seq, seq});
      }
    }
  }
  comparison.accesses_different =
      (comparison.subnets_compared - comparison.subnets_equal) * shape.positions;
  comparison.layers = {{0, "stem", origin_seq, comparison.tainted_count}};
  comparison.origins = {std::move(origin)};
  comparison.origin_count = 1;
  return comparison;
}

}  // namespace verbatim
