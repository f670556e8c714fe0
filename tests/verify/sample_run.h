// A small, sound record in memory for the tests of verify/ and cli/, and a reader over it. Its
// causal versions are found by looking back over all earlier subnets, not by the audit's method.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/keyed_random.h"
#include "recorder/content_digest.h"
#include "store/reader.h"
#include "supernet/search_space.h"
#include "supernet/spec.h"
#include "supernet/stream.h"
#include "tests/verify/memory_reader.h"

namespace verbatim {

inline constexpr std::int64_t kSampleSubnets = 12;

/// A digest that depends on all four numbers.
inline Digest MakeDigest(std::uint8_t kind, std::int64_t a = 0, std::int64_t b = 0,
                         std::int64_t c = 0) {
  Digest digest;
  digest.bytes[0] = kind;
  digest.bytes[1] = static_cast<std::uint8_t>(a + 1);
  digest.bytes[2] = static_cast<std::uint8_t>(b + 1);
  digest.bytes[3] = static_cast<std::uint8_t>(c + 1);
  return digest;
}

inline const char* SampleSpecText() {
  return R"({"name": "sample", "seed": 7,
 "data": {"format": "idx", "folder": "data"},
 "supernet": {"stem": {"op": "linear", "features": 8},
  "blocks": [{"repeat": 3, "candidates": [{"op": "linear"},
   {"op": "linear", "activation": "none"}, {"op": "skip"}]}],
  "head": {"op": "classifier"}},
 "training": {"subnets": 12, "batch": 4, "microbatches": 2,
  "optimizer": {"kind": "sgd"}, "lr": {"kind": "constant", "base": 0.1}},
 "evaluation": {"subnets": 2}})";
}

inline Spec SampleSpec() {
  const auto spec = ParseSpec(SampleSpecText(), "sample.json");
  VERBATIM_CHECK(spec.has_value(), "{}", spec.error().message);
  return *spec;
}

struct SampleRun {
  RunInfo run;
  std::vector<EnvironmentRow> environment;
  std::vector<LayerRow> layers;
  std::vector<SubnetRow> subnets;
  std::vector<EvaluationRow> evaluations;
};

/// Greatest earlier subnet that uses `layer`, or -1.
inline std::int64_t CausalPredecessor(const std::vector<SubnetRow>& earlier, std::int32_t layer) {
  for (auto subnet = earlier.rbegin(); subnet != earlier.rend(); ++subnet) {
    for (const AccessRow& access : subnet->accesses) {
      if (access.layer == layer) return subnet->seq;
    }
  }
  return -1;
}

inline SubnetRow SampleSubnet(const SearchSpace& space, const std::vector<SubnetRow>& earlier,
                              const std::string& level) {
  SubnetRow row;
  row.seq = static_cast<std::int64_t>(earlier.size());
  const auto seq32 = static_cast<std::uint32_t>(row.seq);
  row.choices = DrawUniformChoices(space, {7, RandomPurpose::kSampler, 0, 0, seq32});
  row.samples = {seq32, seq32 + 100, seq32 + 200, seq32 + 300};
  row.batch_digest = MakeDigest(1, row.seq);
  row.loss_bits = 0x40000000 + seq32;
  for (int position = 0; position < space.positions(); ++position) {
    const Layer& layer = space.LayerAt(position, row.choices);
    if (!layer.IsVersioned()) continue;
    AccessRow access;
    access.layer = layer.id;
    access.read_seq = access.base_seq = CausalPredecessor(earlier, layer.id);
    access.stage = position < 2 ? 0 : 1;
    if (level != "losses") access.weights = MakeDigest(2, row.seq, layer.id);
    if (level != "losses") access.optimizer_state = MakeDigest(3, row.seq, layer.id);
    if (level == "full") access.gradients = MakeDigest(4, row.seq, layer.id);
    row.accesses.push_back(access);
  }
  for (int i = 0; level == "full" && i < 2 * space.positions(); ++i) {
    const int microbatch = i / space.positions();
    const int position = i % space.positions();
    row.activations.push_back({microbatch, position, MakeDigest(5, row.seq, microbatch, position)});
  }
  row.content_leaf = ContentLeaf(row);
  row.layout_leaf = LayoutLeaf(row);
  return row;
}

/// A complete run of the sample spec on two stages.
inline SampleRun MakeSampleRun(const std::string& level = "weights") {
  const Spec spec = SampleSpec();
  const auto space = SearchSpace::Build(spec, {4, 0, 0}, 3);
  VERBATIM_CHECK(space.has_value(), "{}", space.error().message);
  SampleRun sample;
  sample.run = {"0.1.0",
                SpecToJson(spec),
                "/tmp",
                "verbatim train sample.json -o run.db",
                "causal",
                level,
                "cpu",
                2,
                4,
                "equal",
                kSampleSubnets,
                MakeDigest(9),
                "2026-01-31T12:00:00Z",
                "2026-01-31T12:00:05Z",
                RunStatus::kComplete,
                ""};
  sample.environment = {
      {"cpu.model", "Sample CPU"}, {"info.host", "one"}, {"threads_per_stage", "3"}};
  for (const Layer& layer : space->layers()) {
    sample.layers.push_back({layer.id, layer.name, layer.position, layer.candidate,
                             Describe(layer.op), layer.IsVersioned(), MakeDigest(8, layer.id)});
  }
  for (std::int64_t seq = 0; seq < kSampleSubnets; ++seq) {
    sample.subnets.push_back(SampleSubnet(*space, sample.subnets, level));
  }
  for (std::uint32_t index = 0; index < 2; ++index) {
    sample.evaluations.push_back(
        {index, DrawUniformChoices(*space, {7, RandomPurpose::kEvaluationSubnet, 0, 0, index}),
         70 + index, 100});
  }
  return sample;
}

/// Makes changed rows those of a record that was written so, instead of changed afterwards.
inline void Seal(SampleRun& sample) {
  for (SubnetRow& row : sample.subnets) {
    row.content_leaf = ContentLeaf(row);
    row.layout_leaf = LayoutLeaf(row);
  }
}

inline std::int64_t CountAccesses(const SampleRun& sample) {
  std::int64_t count = 0;
  for (const SubnetRow& subnet : sample.subnets) count += std::ssize(subnet.accesses);
  return count;
}

/// Reads a SampleRun, which it refers to and which may be changed in between.
class SampleReader : public MemoryReader {
 public:
  explicit SampleReader(const SampleRun& sample) : sample_(sample) {}

  Result<RunInfo> Run() const override { return sample_.run; }
  Result<std::vector<EnvironmentRow>> Environment() const override { return sample_.environment; }
  Result<std::vector<LayerRow>> Layers() const override { return sample_.layers; }
  Result<std::int64_t> SubnetCount() const override { return std::ssize(sample_.subnets); }
  Result<std::int64_t> AccessCount() const override { return CountAccesses(sample_); }
  Result<std::unique_ptr<SubnetCursor>> Subnets(const ReadOptions&) const override {
    return std::make_unique<Cursor>(*this);
  }
  Result<std::optional<SubnetRow>> Subnet(std::int64_t seq, const ReadOptions&) const override {
    if (seq == unreadable_from_) return BadInput("row is unreadable");
    for (const SubnetRow& subnet : sample_.subnets) {
      if (subnet.seq == seq) return subnet;
    }
    return std::nullopt;
  }
  Result<std::vector<LineageRow>> Lineage(std::int32_t layer) const override {
    std::vector<LineageRow> rows;
    for (const SubnetRow& subnet : sample_.subnets) {
      for (const AccessRow& access : subnet.accesses) {
        if (access.layer == layer) rows.push_back({subnet.seq, access});
      }
    }
    return rows;
  }
  Result<std::vector<EvaluationRow>> Evaluations() const override { return sample_.evaluations; }
  Result<std::vector<std::string>> IntegrityProblems() const override { return problems_; }

  void SetIntegrityProblems(std::vector<std::string> problems) { problems_ = std::move(problems); }
  /// Makes the row of this subnet, and those after it, unreadable.
  void SetUnreadableFrom(std::int64_t seq) { unreadable_from_ = seq; }

 private:
  class Cursor : public SubnetCursor {
   public:
    explicit Cursor(const SampleReader& reader) : reader_(reader) {}
    Result<const SubnetRow*> Next() override {
      const auto& subnets = reader_.sample_.subnets;
      if (next_ == subnets.size()) return nullptr;
      const SubnetRow& subnet = subnets[next_++];
      if (subnet.seq == reader_.unreadable_from_) return BadInput("row is unreadable");
      return &subnet;
    }

   private:
    const SampleReader& reader_;
    std::size_t next_ = 0;
  };

  const SampleRun& sample_;
  std::vector<std::string> problems_;
  std::int64_t unreadable_from_ = -1;
};

}  // namespace verbatim
