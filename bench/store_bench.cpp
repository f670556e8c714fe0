// Speed and size of a record: 20,000 subnets of 48 accesses each, in batches of 64.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <vector>

#include "base/check.h"
#include "bench/synthetic/synthetic_record.h"
#include "recorder/content_digest.h"
#include "store/reader.h"
#include "store/writer.h"
#include "verify/examine.h"

namespace verbatim {
namespace {

constexpr int kSubnets = 20000;
constexpr int kAccesses = 48;
constexpr int kSubnetsPerTransaction = 64;

SyntheticOptions Options(std::int64_t subnets, int stages, int microbatches) {
  SyntheticOptions options;
  options.subnets = subnets;
  options.stages = stages;
  options.microbatches = microbatches;
  return options;
}

/// What is written, made before anything is measured.
struct Subnets {
  explicit Subnets(const SyntheticOptions& options) : run(options) {
    for (std::int64_t seq = 0; seq < options.subnets; ++seq) rows.push_back(run.Next());
  }
  SyntheticRun run;
  std::vector<SubnetRow> rows;
};

class RecordFile {
 public:
  RecordFile() : path_("store_bench-" + std::to_string(getpid()) + ".db") {}
  ~RecordFile() {
    for (const char* suffix : {"", "-wal", "-shm"}) {
      std::filesystem::remove(path_.string() + suffix);
    }
  }
  const std::filesystem::path& path() const { return path_; }

  /// With the leaves and nodes that a run's recorder computes.
  void Write(const Subnets& subnets) const {
    auto writer = RecordWriter::Create(path_, subnets.run.run(), {}, subnets.run.layers(), true);
    VERBATIM_CHECK(writer);
    std::vector<SubnetRow> batch;
    for (const SubnetRow& row : subnets.rows) {
      batch.push_back(row);
      batch.back().content_leaf = ContentLeaf(row);
      batch.back().layout_leaf = LayoutLeaf(row);
      if (batch.size() < kSubnetsPerTransaction) continue;
      VERBATIM_CHECK((*writer)->WriteSubnets(batch));
      batch.clear();
    }
    VERBATIM_CHECK((*writer)->WriteSubnets(batch));
    VERBATIM_CHECK((*writer)->Close(RunStatus::kComplete, ""));
  }

 private:
  std::filesystem::path path_;
};

void CountAccesses(benchmark::State& state, std::int64_t subnets = kSubnets) {
  state.SetItemsProcessed(state.iterations() * subnets * kAccesses);
}

// Arguments: stages, micro-batches, of which the timeline has 2 tasks per stage and one more.
void WriteRecord(benchmark::State& state) {
  const Subnets subnets(
      Options(kSubnets, static_cast<int>(state.range(0)), static_cast<int>(state.range(1))));
  RecordFile file;
  for (auto _ : state) file.Write(subnets);
  CountAccesses(state);
  const auto bytes = static_cast<double>(std::filesystem::file_size(file.path()));
  state.counters["bytes_per_access"] = bytes / (kSubnets * kAccesses);
}
BENCHMARK(WriteRecord)->Args({1, 1})->Args({8, 1})->Args({8, 4})->Unit(benchmark::kMillisecond);

void ReadRecord(benchmark::State& state) {
  RecordFile file;
  file.Write(Subnets(Options(kSubnets, 8, 1)));
  auto reader = RecordReader::Open(file.path());
  for (auto _ : state) {
    std::size_t accesses = 0;
    VERBATIM_CHECK((*reader)->ForEachSubnet({}, [&](const SubnetRow& subnet) {
      accesses += subnet.accesses.size();
      return true;
    }));
    VERBATIM_CHECK(accesses == kSubnets * kAccesses);
  }
  CountAccesses(state);
}
BENCHMARK(ReadRecord)->Unit(benchmark::kMillisecond);

void ReadLineage(benchmark::State& state) {
  RecordFile file;
  file.Write(Subnets(Options(kSubnets, 8, 1)));
  auto reader = RecordReader::Open(file.path());
  for (auto _ : state) benchmark::DoNotOptimize((*reader)->Lineage(500)->size());
}
BENCHMARK(ReadLineage)->Unit(benchmark::kMillisecond);

void DigestContent(benchmark::State& state) {
  RecordFile file;
  file.Write(Subnets(Options(kSubnets, 8, 1)));
  auto reader = RecordReader::Open(file.path());
  for (auto _ : state) benchmark::DoNotOptimize(*ContentDigest(**reader));
  CountAccesses(state);
}
BENCHMARK(DigestContent)->Unit(benchmark::kMillisecond);

void CheckIntegrity(benchmark::State& state) {
  RecordFile file;
  file.Write(Subnets(Options(kSubnets, 8, 1)));
  auto reader = RecordReader::Open(file.path());
  for (auto _ : state) VERBATIM_CHECK((*reader)->IntegrityProblems()->empty());
  CountAccesses(state);
}
BENCHMARK(CheckIntegrity)->Unit(benchmark::kMillisecond);

// What `verbatim verify` does of one record, on one core. Argument: subnets.
void VerifyRecord(benchmark::State& state) {
  RecordFile file;
  VERBATIM_CHECK(WriteSyntheticRecord(file.path(), Options(state.range(0), 8, 1), true));
  for (auto _ : state) {
    const auto reader = RecordReader::Open(file.path());
    VERBATIM_CHECK(ExamineRecord(**reader, "record").exit_code() == 0);
  }
  CountAccesses(state, state.range(0));
}
BENCHMARK(VerifyRecord)->Arg(kSubnets)->Arg(320000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace verbatim
