// Speed and memory of comparing two records: 48 accesses per subnet, equal, and with one flipped
// bit.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <filesystem>
#include <string>

#include "base/check.h"
#include "bench/synthetic/synthetic_record.h"
#include "store/reader.h"
#include "verify/diff.h"
#include "verify/report.h"

namespace verbatim {
namespace {

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
  const std::filesystem::path folder = fmt::format("diff_bench-{}", getpid());
  std::filesystem::create_directory(folder);
  SyntheticOptions options;
  options.subnets = subnets;
  for (const char* name : {"a.db", "b.db", "c.db"}) {
    if (name[0] == 'c') options.flipped = subnets / 2;
    VERBATIM_CHECK(WriteSyntheticRecord(folder / name, options).has_value());
  }
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
