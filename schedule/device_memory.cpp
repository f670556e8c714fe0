#include "schedule/device_memory.h"

#include <algorithm>

namespace verbatim {
namespace {

/// Whether some partition gives the position to the stage: every stage has at least one.
bool MayRun(int stage, int position, int stages, int positions) {
  return position >= stage && positions - position >= stages - stage;
}

}  // namespace

std::int64_t PermanentBytes(const SearchSpace& space, std::span<const LayerBytes> bytes, int stage,
                            int stages) {
  std::int64_t sum = 0;
  for (const Layer& layer : space.layers()) {
    if (!IsPermanent(layer) || !MayRun(stage, layer.position, stages, space.positions())) continue;
    sum += (layer.delay + 2) * bytes[layer.id].parameters + bytes[layer.id].state;
  }
  return sum;
}

LeastDeviceMemory::LeastDeviceMemory(const SearchSpace& space, std::vector<LayerBytes> bytes,
                                     int stages)
    : space_(space), bytes_(std::move(bytes)) {
  for (int stage = 0; stage < stages; ++stage) {
    permanent_.push_back(PermanentBytes(space, bytes_, stage, stages));
    most_ = std::max(most_, permanent_.back());
  }
}

void LeastDeviceMemory::Add(std::span<const std::uint16_t> choices, const StageRanges& ranges) {
  for (int stage = 0; stage < ranges.stages(); ++stage) {
    std::int64_t part = permanent_[stage];
    for (int position = ranges.Begin(stage); position < ranges.End(stage); ++position) {
      const Layer& layer = space_.LayerAt(position, choices);
      if (!IsPermanent(layer)) part += bytes_[layer.id].total();
    }
    most_ = std::max(most_, part);
    sum_ += static_cast<double>(part);
    ++parts_;
  }
}

double LeastDeviceMemory::mean_bytes() const {
  return parts_ == 0 ? 0.0 : sum_ / static_cast<double>(parts_);
}

}  // namespace verbatim
