// Speed and memory of comparing two records: 48 accesses per subnet, equal, and with one flipped
// bit.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/encoding.h"
#include "base/keyed_random.h"
#include "recorder/content_digest.h"
#include "recorder/digest.h"
#include "store/reader.h"
#include "store/writer.h"
#include "supernet/search_space.h"
#include "supernet/spec.h"
#include "supernet/stream.h"
#include "verify/diff.h"
#include "verify/report.h"

namespace verbatim {
namespace {

constexpr int kBlocks = 46;  // and the stem and the head: 48 accesses
constexpr int kCandidates = 23;
constexpr int kSubnetsPerTransaction = 64;

Spec MakeSpec(std::int64_t subnets) {
  std::string candidates;
  for (int i = 0; i < kCandidates; ++i) {
    candidates += fmt::format(R"({}{{"op": "ffn", "hidden": {}}})", i == 0 ? "" : ",", i + 1);
  }
  const std::string text = fmt::format(
      R"({{"name": "diff bench", "seed": 7, "data": {{"format": "idx", "folder": "data"}},
  "supernet": {{"stem": {{"op": "linear", "features": 8}},
    "blocks": [{{"repeat": {}, "candidates": [{}]}}], "head": {{"op": "classifier"}}}},
  "training": {{"subnets": {}, "batch": 64, "optimizer": {{"kind": "sgd"}},
    "lr": {{"kind": "constant", "base": 0.1}}}},
  "evaluation": {{"subnets": 0}}}})",
      kBlocks, candidates, subnets);
  const auto spec = ParseSpec(text, "diff_bench");
  VERBATIM_CHECK(spec.has_value(), "{}", spec.error().message);
  return *spec;
}

Digest Mix(std::uint32_t kind, const Digest& a, const Digest& b) {
  Encoder message;
  message.U32(kind).Bytes(a.bytes.data(), a.bytes.size()).Bytes(b.bytes.data(), b.bytes.size());
  return DigestBytes(message.bytes().data(), message.bytes().size());
}

/// Trains on digests: what a subnet leaves is a hash of what it read.
class SyntheticRun {
 public:
  SyntheticRun(const Spec& spec, const SearchSpace& space, std::int64_t flipped)
      : spec_(spec), space_(space), flipped_(flipped), version_(space.layers().size(), -1) {
    for (const Layer& layer : space.layers()) {
      const Digest initial = DigestBytes(layer.name.data(), layer.name.size());
      weights_.push_back(initial);
      layers_.push_back({layer.id, layer.name, layer.position, layer.candidate, Describe(layer.op),
                         layer.IsVersioned(), initial});
    }
  }

  void Write(const std::filesystem::path& path) {
    RunInfo run;
    run.spec_json = SpecToJson(spec_);
    run.policy = "causal";
    run.record_level = "weights";
    run.device = "cpu";
    run.subnets_planned = spec_.training.subnets;
    run.started_utc = "2026-01-31T12:00:00Z";
    auto writer = RecordWriter::Create(path, run, {}, layers_, true);
    VERBATIM_CHECK(writer.has_value(), "{}", writer.error().message);
    std::vector<SubnetRow> batch;
    for (std::int64_t seq = 0; seq < spec_.training.subnets; ++seq) {
      batch.push_back(Train(seq));
      if (batch.size() < kSubnetsPerTransaction && seq + 1 < spec_.training.subnets) continue;
      VERBATIM_CHECK((*writer)->WriteSubnets(batch).has_value());
      batch.clear();
    }
    VERBATIM_CHECK((*writer)->Close(RunStatus::kComplete, "").has_value());
  }

 private:
  SubnetRow Train(std::int64_t seq) {
    SubnetRow row;
    row.seq = seq;
    const auto seq32 = static_cast<std::uint32_t>(seq);
    row.choices = DrawUniformChoices(space_, {spec_.seed, RandomPurpose::kSampler, 0, 0, seq32});
    for (std::uint32_t i = 0; i < 64; ++i) row.samples.push_back((seq32 * 64 + i) % 50000);
    row.batch_digest = DigestBytes(row.samples.data(), 256);
    Digest activation = row.batch_digest;
    for (int position = 0; position < space_.positions(); ++position) {
      activation = Mix(1, activation, weights_[LayerAt(position, row).id]);
    }
    row.loss_bits = activation.bytes[0];
    for (int position = 0; position < space_.positions(); ++position) {
      const std::int32_t layer = LayerAt(position, row).id;
      weights_[layer] = Mix(2, weights_[layer], activation);
      if (seq == flipped_ && position == 20) weights_[layer].bytes[0] ^= 1;
      AccessRow access;
      access.layer = layer;
      access.read_seq = access.base_seq = version_[layer];
      access.weights = weights_[layer];
      access.optimizer_state = Mix(3, weights_[layer], activation);
      version_[layer] = seq;
      row.accesses.push_back(access);
    }
    row.content_leaf = ContentLeaf(row);
    row.layout_leaf = LayoutLeaf(row);
    return row;
  }
  const Layer& LayerAt(int position, const SubnetRow& row) const {
    return space_.LayerAt(position, row.choices);
  }

  const Spec& spec_;
  const SearchSpace& space_;
  std::int64_t flipped_;
  std::vector<Digest> weights_;
  std::vector<std::int64_t> version_;
  std::vector<LayerRow> layers_;
};

double ProcessorSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double PeakMebibytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void Compare(const std::filesystem::path& a, const std::filesystem::path& b, const char* name) {
  const auto of_a = RecordReader::Open(a);
  const auto of_b = RecordReader::Open(b);
  const double peak = PeakMebibytes();
  const auto started = std::chrono::steady_clock::now();
  const double processor = ProcessorSeconds();
  const auto verdict = CompareRecords(**of_a, a.string(), **of_b, b.string());
  const double seconds = ProcessorSeconds() - processor;
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - started;
  VERBATIM_CHECK(verdict.has_value() && verdict->comparison.has_value(), "{}", Summary(*verdict));
  const auto pairs = static_cast<double>(verdict->comparison->accesses_compared);
  fmt::print("| {} | {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.1f} |\n", name,
             verdict->comparison->subnets_compared, wall.count(), seconds, 2e-6 * pairs / seconds,
             1e-6 * pairs / seconds, PeakMebibytes() - peak);
}

void Measure(std::int64_t subnets) {
  const Spec spec = MakeSpec(subnets);
  const auto space = SearchSpace::Build(spec, {4, 0, 0}, 3);
  VERBATIM_CHECK(space.has_value(), "{}", space.error().message);
  const std::filesystem::path folder = fmt::format("diff_bench-{}", getpid());
  std::filesystem::create_directory(folder);
  SyntheticRun(spec, *space, -1).Write(folder / "a.db");
  SyntheticRun(spec, *space, -1).Write(folder / "b.db");
  SyntheticRun(spec, *space, subnets / 2).Write(folder / "c.db");
  for (int round = 0; round < 3; ++round) {
    Compare(folder / "a.db", folder / "b.db", "equal");
    Compare(folder / "a.db", folder / "c.db", "a bit flipped half-way");
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace verbatim

int main() {
  fmt::print(
      "| records | subnets | wall s | processor s | million accesses/s | million pairs/s | peak "
      "growth MiB |\n|---|---|---|---|---|---|---|\n");
  for (const std::int64_t subnets : {5000, 20000}) verbatim::Measure(subnets);
}
