#include "bench/synthetic/synthetic_record.h"

#include <fmt/format.h>

#include <string>

#include "base/check.h"
#include "base/encoding.h"
#include "base/keyed_random.h"
#include "recorder/content_digest.h"
#include "recorder/digest.h"
#include "store/writer.h"
#include "supernet/stream.h"

namespace verbatim {
namespace {

constexpr std::size_t kSubnetsPerTransaction = 64;
constexpr std::uint32_t kSamples = 50000;
constexpr int kFlippedPosition = 20;
constexpr std::int64_t kTaskNs = 600'000;

Spec MakeSpec(const SyntheticOptions& options) {
  std::string candidates;
  for (int i = 0; i < options.candidates; ++i) {
    candidates += fmt::format(R"({}{{"op": "ffn", "hidden": {}}})", i == 0 ? "" : ",", i + 1);
  }
  const std::string text = fmt::format(
      R"({{"name": "synthetic", "seed": 7, "data": {{"format": "idx", "folder": "data"}},
  "supernet": {{"stem": {{"op": "linear", "features": 8}},
    "blocks": [{{"repeat": {}, "candidates": [{}]}}], "head": {{"op": "classifier"}}}},
  "training": {{"subnets": {}, "batch": {}, "microbatches": {}, "optimizer": {{"kind": "sgd"}},
    "lr": {{"kind": "constant", "base": 0.1}}}},
  "evaluation": {{"subnets": 0}}}})",
      options.blocks, candidates, options.subnets, options.batch, options.microbatches);
  auto spec = ParseSpec(text, "the synthetic spec");
  VERBATIM_CHECK(spec.has_value(), "{}", spec.error().message);
  return *std::move(spec);
}

SearchSpace MakeSpace(const Spec& spec) {
  auto space = SearchSpace::Build(spec, {4, 0, 0}, 3);
  VERBATIM_CHECK(space.has_value(), "{}", space.error().message);
  return *std::move(space);
}

RunInfo MakeRun(const SyntheticOptions& options, const Spec& spec) {
  RunInfo run;
  run.tool_version = "synthetic";
  run.spec_json = SpecToJson(spec);
  run.spec_folder = "/";
  run.command_line = "make_record";
  run.policy = "causal";
  run.record_level = "weights";
  run.device = "cpu";
  run.stages = options.stages;
  run.in_flight = 2 * options.stages;
  run.subnets_planned = options.subnets;
  run.started_utc = "2026-01-31T12:00:00Z";
  return run;
}

Digest Mix(std::uint32_t kind, const Digest& a, const Digest& b) {
  Encoder message;
  message.U32(kind).Bytes(a.bytes.data(), a.bytes.size()).Bytes(b.bytes.data(), b.bytes.size());
  return DigestBytes(message.bytes().data(), message.bytes().size());
}

}  // namespace

SyntheticRun::SyntheticRun(const SyntheticOptions& options)
    : options_(options),
      spec_(MakeSpec(options)),
      space_(MakeSpace(spec_)),
      run_(MakeRun(options, spec_)),
      version_(space_.layers().size(), -1) {
  for (const Layer& layer : space_.layers()) {
    const Digest initial = DigestBytes(layer.name.data(), layer.name.size());
    weights_.push_back(initial);
    layers_.push_back({layer.id, layer.name, layer.position, layer.candidate, Describe(layer.op),
                       layer.IsVersioned(), initial});
  }
}

SubnetRow SyntheticRun::Next() {
  SubnetRow row;
  row.seq = next_++;
  const auto seq32 = static_cast<std::uint32_t>(row.seq);
  row.choices = DrawUniformChoices(space_, {spec_.seed, RandomPurpose::kSampler, 0, 0, seq32});
  for (int i = 0; i < options_.batch; ++i) {
    row.samples.push_back((seq32 * 64 + static_cast<std::uint32_t>(i)) % kSamples);
  }
  row.batch_digest = DigestBytes(row.samples.data(), 4 * row.samples.size());
  Digest activation = row.batch_digest;
  for (int position = 0; position < space_.positions(); ++position) {
    activation = Mix(1, activation, weights_[space_.LayerAt(position, row.choices).id]);
  }
  row.loss_bits = 0x40000000u | activation.bytes[0];
  AddAccesses(row, activation);
  AddTasks(row);
  row.content_leaf = ContentLeaf(row);
  row.layout_leaf = LayoutLeaf(row);
  return row;
}

void SyntheticRun::AddAccesses(SubnetRow& row, const Digest& activation) {
  for (int position = 0; position < space_.positions(); ++position) {
    const std::int32_t layer = space_.LayerAt(position, row.choices).id;
    weights_[layer] = Mix(2, weights_[layer], activation);
    if (row.seq == options_.flipped && position == kFlippedPosition) weights_[layer].bytes[0] ^= 1;
    AccessRow access;
    access.layer = layer;
    access.read_seq = access.base_seq = version_[layer];
    access.stage = position * options_.stages / space_.positions();
    access.weights = weights_[layer];
    access.optimizer_state = Mix(3, weights_[layer], activation);
    version_[layer] = row.seq;
    row.accesses.push_back(access);
  }
}

/// Sorted: by stage, then micro-batch, then phase.
void SyntheticRun::AddTasks(SubnetRow& row) const {
  const std::int64_t start = row.seq * kTaskNs * 2 * options_.microbatches;
  const auto add = [&](int stage, int microbatch, Phase phase, std::int64_t after) {
    const std::int64_t begin = start + after * kTaskNs;
    row.activities.push_back({stage, microbatch, phase, begin, begin + kTaskNs - 1000 * stage});
  };
  for (int stage = 0; stage < options_.stages; ++stage) {
    for (int microbatch = 0; microbatch < options_.microbatches; ++microbatch) {
      const std::int64_t back = 2 * options_.stages - 1 - stage + options_.microbatches;
      add(stage, microbatch, Phase::kForward, stage + microbatch);
      add(stage, microbatch, Phase::kBackward, back + microbatch);
      if (microbatch == 0) add(stage, 0, Phase::kUpdate, back + options_.microbatches);
    }
  }
}

Status WriteSyntheticRecord(const std::filesystem::path& path, const SyntheticOptions& options,
                            bool overwrite) {
  SyntheticRun run(options);
  const std::int64_t trained = options.trained < 0 ? options.subnets : options.trained;
  ASSIGN_OR_RETURN(const auto writer,
                   RecordWriter::Create(path, run.run(), {}, run.layers(), overwrite));
  std::vector<SubnetRow> batch;
  for (std::int64_t seq = 0; seq < trained; ++seq) {
    batch.push_back(run.Next());
    if (batch.size() < kSubnetsPerTransaction && seq + 1 < trained) continue;
    RETURN_IF_ERROR(writer->WriteSubnets(batch));
    batch.clear();
  }
  const bool is_whole = trained == options.subnets;
  return writer->Close(is_whole ? RunStatus::kComplete : RunStatus::kInterrupted,
                       is_whole ? "" : "stopped on request");
}

}  // namespace verbatim
