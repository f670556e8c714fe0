// Speed and size of a record: 20,000 subnets of 48 accesses each, in batches of 64.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <random>
#include <vector>

#include "base/check.h"
#include "recorder/content_digest.h"
#include "recorder/recorder.h"
#include "store/reader.h"
#include "store/writer.h"

namespace verbatim {
namespace {

constexpr int kSubnets = 20000;
constexpr int kBlocks = 48;
constexpr int kCandidates = 23;
constexpr int kBatch = 64;
constexpr int kSubnetsPerTransaction = 64;
constexpr int kStages = 8;

Digest RandomDigest(std::mt19937_64& random) {
  Digest digest;
  for (auto& byte : digest.bytes) byte = static_cast<std::uint8_t>(random());
  return digest;
}

std::vector<LayerRow> Layers() {
  std::vector<LayerRow> layers;
  for (int i = 0; i < kBlocks * kCandidates; ++i) {
    LayerRow layer;
    layer.layer = i;
    layer.name = "block" + std::to_string(i / kCandidates) + "." + std::to_string(i % kCandidates);
    layer.position = 1 + i / kCandidates;
    layer.candidate = i % kCandidates;
    layer.op = "separable_conv kernel 5";
    layer.versioned = true;
    layers.push_back(layer);
  }
  return layers;
}

std::vector<SubnetRow> Subnets(int activities) {
  std::mt19937_64 random(1);
  std::vector<SubnetRow> subnets(kSubnets);
  std::vector<std::int64_t> last_writer(kBlocks * kCandidates, -1);
  for (int seq = 0; seq < kSubnets; ++seq) {
    SubnetRow& subnet = subnets[seq];
    subnet.seq = seq;
    for (int i = 0; i < kBatch; ++i) subnet.samples.push_back(random() % 50000);
    subnet.batch_digest = RandomDigest(random);
    subnet.loss_bits = 0x40000000u + static_cast<std::uint32_t>(random() % 0x800000);
    for (int block = 0; block < kBlocks; ++block) {
      const auto choice = static_cast<std::uint16_t>(random() % kCandidates);
      subnet.choices.push_back(choice);
      AccessRow access;
      access.layer = block * kCandidates + choice;
      access.read_seq = access.base_seq = last_writer[access.layer];
      access.stage = block * kStages / kBlocks;
      access.weights = RandomDigest(random);
      access.optimizer_state = RandomDigest(random);
      last_writer[access.layer] = seq;
      subnet.accesses.push_back(access);
    }
    for (int i = 0; i < activities; ++i) {
      const std::int64_t begin = seq * 50'000'000LL + i * 600'000LL;
      subnet.activities.push_back({i % kStages, i / kStages / 2, Phase(i / kStages % 2), begin,
                                   begin + 550'000 + static_cast<int>(random() % 9999)});
    }
  }
  return subnets;
}

class RecordFile {
 public:
  RecordFile() : path_("store_bench-" + std::to_string(getpid()) + ".db") {}
  ~RecordFile() {
    for (const char* suffix : {"", "-wal", "-shm"}) {
      std::filesystem::remove(path_.string() + suffix);
    }
  }
  const std::filesystem::path& path() const { return path_; }

  void Write(const std::vector<SubnetRow>& subnets) const {
    RunInfo run;
    auto writer = RecordWriter::Create(path_, run, {}, Layers(), true);
    VERBATIM_CHECK(writer);
    const std::span<const SubnetRow> all(subnets);
    for (std::size_t i = 0; i < all.size(); i += kSubnetsPerTransaction) {
      const std::size_t count = std::min<std::size_t>(kSubnetsPerTransaction, all.size() - i);
      VERBATIM_CHECK((*writer)->WriteSubnets(all.subspan(i, count)));
    }
    VERBATIM_CHECK((*writer)->Close(RunStatus::kComplete, ""));
  }

 private:
  std::filesystem::path path_;
};

void CountAccesses(benchmark::State& state) {
  state.SetItemsProcessed(state.iterations() * kSubnets * kBlocks);
}

// Argument: tasks in the timeline per subnet (8 stages: 2 per micro-batch and stage).
void WriteRecord(benchmark::State& state) {
  const auto subnets = Subnets(static_cast<int>(state.range(0)));
  RecordFile file;
  for (auto _ : state) file.Write(subnets);
  CountAccesses(state);
  const auto bytes = static_cast<double>(std::filesystem::file_size(file.path()));
  state.counters["bytes_per_access"] = bytes / (kSubnets * kBlocks);
}
BENCHMARK(WriteRecord)->Arg(0)->Arg(3)->Arg(64)->Unit(benchmark::kMillisecond);

void ReadRecord(benchmark::State& state) {
  RecordFile file;
  file.Write(Subnets(0));
  auto reader = RecordReader::Open(file.path());
  for (auto _ : state) {
    std::size_t accesses = 0;
    VERBATIM_CHECK((*reader)->ForEachSubnet({}, [&](const SubnetRow& subnet) {
      accesses += subnet.accesses.size();
      return true;
    }));
    VERBATIM_CHECK(accesses == kSubnets * kBlocks);
  }
  CountAccesses(state);
}
BENCHMARK(ReadRecord)->Unit(benchmark::kMillisecond);

void ReadLineage(benchmark::State& state) {
  RecordFile file;
  file.Write(Subnets(0));
  auto reader = RecordReader::Open(file.path());
  for (auto _ : state) benchmark::DoNotOptimize((*reader)->Lineage(500)->size());
}
BENCHMARK(ReadLineage)->Unit(benchmark::kMillisecond);

void DigestContent(benchmark::State& state) {
  RecordFile file;
  file.Write(Subnets(0));
  auto reader = RecordReader::Open(file.path());
  for (auto _ : state) benchmark::DoNotOptimize(*ContentDigest(**reader));
  CountAccesses(state);
}
BENCHMARK(DigestContent)->Unit(benchmark::kMillisecond);

void CheckIntegrity(benchmark::State& state) {
  RecordFile file;
  file.Write(Subnets(0));
  auto reader = RecordReader::Open(file.path());
  for (auto _ : state) VERBATIM_CHECK((*reader)->IntegrityProblems()->empty());
  CountAccesses(state);
}
BENCHMARK(CheckIntegrity)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace verbatim
