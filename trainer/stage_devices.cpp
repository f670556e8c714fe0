#include "trainer/stage_devices.h"

#include <algorithm>
#include <cstdint>

#include "base/check.h"

namespace verbatim {
namespace {

at::Device FirstOf(std::span<const at::Device> devices) {
  VERBATIM_CHECK(!devices.empty(), "no device");
  return devices.front();
}

}  // namespace

StageDevices::StageDevices(std::span<const at::Device> devices, int begin, int end)
    : home_(FirstOf(devices)), begin_(begin) {
  const std::int64_t stages = end - begin;
  const std::int64_t used = std::min<std::int64_t>(std::ssize(devices), stages);
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    of_.push_back(devices[static_cast<std::size_t>(stage * used / stages)]);
  }
}

at::Device StageDevices::Of(int stage) const {
  VERBATIM_CHECK(Has(stage), "stage {} is elsewhere", stage);
  return of_[static_cast<std::size_t>(stage - begin_)];
}

std::vector<at::Device> ShareOf(std::span<const at::Device> devices, const LocalRank& local) {
  VERBATIM_CHECK(local.rank >= 0 && local.rank < local.ranks);
  const std::int64_t count = std::ssize(devices);
  if (count < local.ranks) return {devices.begin(), devices.end()};
  return {devices.begin() + count * local.rank / local.ranks,
          devices.begin() + count * (local.rank + 1) / local.ranks};
}

std::string NameOf(std::span<const at::Device> devices) {
  return devices.size() == 1 ? devices.front().str()
                             : c10::DeviceTypeName(devices.front().type(), /*lower_case=*/true);
}

}  // namespace verbatim
