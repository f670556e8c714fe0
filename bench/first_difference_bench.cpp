// Time of the whole command `verbatim diff --first` on two records of 320,000 subnets of 48 layers,
// wherever they differ.
//
//     build/bench/bench/first_difference_bench build/bench/cli/verbatim [SUBNETS]
//
// Needs 120 bytes of disk per access: 2 GB for 320,000 subnets, in the current folder.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "bench/synthetic/synthetic_record.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kRepeats = 9;

struct Timing {
  double wall_ms = 0;
  double processor_ms = 0;
};

double Milliseconds(const timeval& time) {
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_usec);
}

/// Runs the command once, without its output.
Timing RunOnce(const fs::path& program, const fs::path& a, const fs::path& b, int exit_code) {
  const auto started = Clock::now();
  const pid_t child = fork();
  VERBATIM_CHECK(child >= 0);
  if (child == 0) {
    dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
    execl(program.c_str(), "verbatim", "diff", a.c_str(), b.c_str(), "--first", nullptr);
    _exit(127);
  }
  int status = 0;
  rusage usage{};
  VERBATIM_CHECK(wait4(child, &status, 0, &usage) == child);
  const std::chrono::duration<double, std::milli> wall = Clock::now() - started;
  VERBATIM_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == exit_code, "exit code {}, not {}",
                 WEXITSTATUS(status), exit_code);
  return {wall.count(), Milliseconds(usage.ru_utime) + Milliseconds(usage.ru_stime)};
}

void Measure(const fs::path& program, const fs::path& a, const fs::path& b, const char* place,
             int exit_code) {
  std::vector<double> wall, processor;
  const double first = RunOnce(program, a, b, exit_code).wall_ms;
  for (int i = 0; i < kRepeats; ++i) {
    const Timing timing = RunOnce(program, a, b, exit_code);
    wall.push_back(timing.wall_ms);
    processor.push_back(timing.processor_ms);
  }
  std::sort(wall.begin(), wall.end());
  std::sort(processor.begin(), processor.end());
  fmt::print("| {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} |\n", place, first, wall[kRepeats / 2],
             wall.back(), processor[kRepeats / 2]);
  std::fflush(stdout);
}

void Run(const fs::path& program, std::int64_t subnets) {
  const fs::path folder = fmt::format("first_difference_bench-{}", getpid());
  fs::create_directory(folder);
  SyntheticOptions options;
  options.subnets = subnets;
  VERBATIM_CHECK(WriteSyntheticRecord(folder / "a.db", options).has_value());
  const struct {
    const char* place;
    std::optional<std::int64_t> flipped;
    std::int64_t trained;
  } cases[] = {{"nowhere", std::nullopt, -1},
               {"only in length", std::nullopt, subnets - 1},
               {"the first subnet", 0, -1},
               {"the middle", subnets / 2, -1},
               {"an odd place", subnets * 7 / 9 + 1, -1},
               {"the last subnet", subnets - 1, -1}};
  fmt::print(
      "| the difference lies in | first run, ms | median, ms | longest, ms | processor, ms |\n"
      "|---|---|---|---|---|\n");
  for (const auto& test : cases) {
    SyntheticOptions other = options;
    other.trained = test.trained;
    if (test.flipped) other.flipped = *test.flipped;
    VERBATIM_CHECK(WriteSyntheticRecord(folder / "b.db", other, /*overwrite=*/true).has_value());
    Measure(program, folder / "a.db", folder / "b.db", test.place, test.flipped ? 1 : 0);
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace verbatim

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: {} VERBATIM [SUBNETS]\n", argv[0]);
    return 2;
  }
  verbatim::Run(argv[1], argc > 2 ? std::atoll(argv[2]) : 320000);
}
