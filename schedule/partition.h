// Which stage runs which positions of a subnet.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "supernet/search_space.h"

namespace verbatim {

/// A contiguous range of positions per stage: stage s runs [first[s], first[s + 1]). Every stage
/// has at least one position.
class StageRanges {
 public:
  explicit StageRanges(std::vector<int> first) : first_(std::move(first)) {}

  int stages() const { return static_cast<int>(first_.size()) - 1; }
  int Begin(int stage) const { return first_[stage]; }
  int End(int stage) const { return first_[stage + 1]; }
  int StageOf(int position) const;

 private:
  std::vector<int> first_;
};

/// Partitions each subnet. A pure function of its choices; any thread.
class Partition {
 public:
  virtual ~Partition() = default;
  virtual int stages() const = 0;
  virtual const StageRanges& Ranges(std::span<const std::uint16_t> choices) const = 0;
};

/// The same ranges for every subnet, as equal in number of positions as can be; the first ones take
/// what is left over. kUsage where there are more stages than positions.
Result<std::unique_ptr<Partition>> MakeEqualPartition(const SearchSpace& space,
                                                      std::int64_t stages);

}  // namespace verbatim
