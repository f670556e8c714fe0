// What layers take of a device's memory, and the least with which a stream can be trained.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedule/partition.h"
#include "supernet/search_space.h"

namespace verbatim {

/// What a layer takes on a device. A layer of no bytes needs no device memory and is never loaded.
struct LayerBytes {
  std::int64_t parameters = 0;
  std::int64_t state = 0;  ///< buffers and optimizer state

  std::int64_t total() const { return parameters + state; }
  bool operator==(const LayerBytes&) const = default;
};

/// Whether the layer is always where it may be used, in several versions: it has a delay.
inline bool IsPermanent(const Layer& layer) {
  return layer.IsVersioned() && layer.delay > 0;
}

/// What `stage` holds whatever the stream: layers with a delay d, in d + 2 versions of their
/// parameters, where a subnet may use them there.
std::int64_t PermanentBytes(const SearchSpace& space, std::span<const LayerBytes> bytes, int stage,
                            int stages);

/// The least budget with which a stream can be trained: on any stage, what is always there and the
/// dearest part of a subnet.
class LeastDeviceMemory {
 public:
  /// `bytes` by layer id. `space` must outlive it.
  LeastDeviceMemory(const SearchSpace& space, std::vector<LayerBytes> bytes, int stages);

  void Add(std::span<const std::uint16_t> choices, const StageRanges& ranges);
  std::int64_t bytes() const { return most_; }
  /// Of a subnet's part on a stage, with what is always there, on average.
  double mean_bytes() const;

 private:
  const SearchSpace& space_;
  const std::vector<LayerBytes> bytes_;
  std::vector<std::int64_t> permanent_;  ///< by stage
  std::int64_t most_ = 0;
  double sum_ = 0.0;
  std::int64_t parts_ = 0;
};

}  // namespace verbatim
