// Which stage runs which positions of a subnet.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "supernet/costs.h"
#include "supernet/search_space.h"

namespace verbatim {

/// A contiguous range of positions per stage: stage s runs [first[s], first[s + 1]). Every stage
/// has at least one position.
class StageRanges {
 public:
  StageRanges() = default;
  explicit StageRanges(std::vector<int> first) : first_(std::move(first)) {}

  int stages() const { return static_cast<int>(first_.size()) - 1; }
  int Begin(int stage) const { return first_[stage]; }
  int End(int stage) const { return first_[stage + 1]; }
  int StageOf(int position) const;
  bool operator==(const StageRanges&) const = default;

 private:
  std::vector<int> first_;
};

/// Partitions each subnet. A pure function of its choices; any thread. No partition bears on a
/// run's bits.
class Partition {
 public:
  virtual ~Partition() = default;
  virtual int stages() const = 0;
  virtual StageRanges Ranges(std::span<const std::uint16_t> choices) const = 0;
};

/// The partition that `name` names (`--partition`), over `stages` stages:
/// "equal": the same ranges for every subnet, as equal in number of positions as can be; the first
/// ones take what is left over.
/// "balanced": for each subnet the ranges whose dearest stage is cheapest (forward + backward of
/// `costs`); of several such, the one whose stages fill up soonest.
/// "6,6,5": that many positions for stage 0, 1, 2, of every subnet.
/// kUsage where there are more stages than positions, where a stage would be empty, where the
/// numbers do not add up, or for another name. `space` must outlive it; `costs` need not.
Result<std::unique_ptr<Partition>> MakePartition(const std::string& name, const SearchSpace& space,
                                                 const CostTable& costs, std::int64_t stages);

}  // namespace verbatim
