#include "cli/compute_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "supernet/spec_limits.h"

namespace verbatim {
namespace {

std::string DeviceProblem(const std::string& device) {
  if (device == "cpu" || device == "cuda") return "";
  // Two digits: LibTorch's index is 8 bits wide, and it would take cuda:256 for cuda:0.
  const bool numbered =
      device.rfind("cuda:", 0) == 0 && device.size() > 5 && device.size() <= 7 &&
      std::all_of(device.begin() + 5, device.end(), [](char c) { return c >= '0' && c <= '9'; });
  return numbered ? "" : fmt::format("'{}' is no device: cpu, cuda or cuda:N", device);
}

}  // namespace

void AddComputeOptions(CLI::App& command, std::string& device, std::int64_t& threads_per_stage) {
  command
      .add_option("--threads-per-stage", threads_per_stage,
                  "Threads that one stage computes with; part of the numeric environment. "
                  "Example: --threads-per-stage 2")
      ->type_name("T")
      ->check(WholeNumber(1, kMaxThreadsPerStage))
      ->capture_default_str();
  command
      .add_option("--device", device,
                  "Where to compute: cpu, cuda (all GPUs) or cuda:N. Example: --device cuda:0")
      ->type_name("DEVICE")
      ->check(CLI::Validator(DeviceProblem, ""))
      ->capture_default_str();
}

}  // namespace verbatim
