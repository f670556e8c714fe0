#include "schedule/partition.h"

#include <fmt/format.h>

#include <algorithm>

namespace verbatim {
namespace {

class FixedPartition : public Partition {
 public:
  explicit FixedPartition(StageRanges ranges) : ranges_(std::move(ranges)) {}
  int stages() const override { return ranges_.stages(); }
  const StageRanges& Ranges(std::span<const std::uint16_t>) const override { return ranges_; }

 private:
  StageRanges ranges_;
};

}  // namespace

int StageRanges::StageOf(int position) const {
  return static_cast<int>(std::upper_bound(first_.begin(), first_.end(), position) -
                          first_.begin()) -
         1;
}

Result<std::unique_ptr<Partition>> MakeEqualPartition(const SearchSpace& space,
                                                      std::int64_t stages) {
  if (stages < 1) {
    return UsageError(fmt::format("--stages {}: a run needs at least one stage", stages));
  }
  if (stages > space.positions()) {
    return UsageError(
        fmt::format("--stages {}: this supernet has {} blocks, which with its stem and head make "
                    "{} positions, and every stage needs one of its own",
                    stages, space.blocks(), space.positions()),
        fmt::format("use --stages {} or fewer", space.positions()));
  }
  std::vector<int> first = {0};
  for (int stage = 0; stage < stages; ++stage) {
    const int size =
        space.positions() / static_cast<int>(stages) + (stage < space.positions() % stages ? 1 : 0);
    first.push_back(first.back() + size);
  }
  return std::make_unique<FixedPartition>(StageRanges(std::move(first)));
}

}  // namespace verbatim
