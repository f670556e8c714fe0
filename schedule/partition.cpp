#include "schedule/partition.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

namespace verbatim {
namespace {

class FixedPartition : public Partition {
 public:
  explicit FixedPartition(StageRanges ranges) : ranges_(std::move(ranges)) {}
  int stages() const override { return ranges_.stages(); }
  StageRanges Ranges(std::span<const std::uint16_t>) const override { return ranges_; }

 private:
  StageRanges ranges_;
};

/// Fills stages up to a bound, which is searched for by halving.
class BalancedPartition : public Partition {
 public:
  BalancedPartition(const SearchSpace& space, const CostTable& costs, int stages)
      : space_(space), stages_(stages) {
    for (const LayerCost& cost : costs.layers) costs_.push_back(cost.forward + cost.backward);
  }
  int stages() const override { return stages_; }

  StageRanges Ranges(std::span<const std::uint16_t> choices) const override {
    std::vector<double> costs(static_cast<std::size_t>(space_.positions()));
    for (int position = 0; position < space_.positions(); ++position) {
      costs[position] = costs_[space_.LayerAt(position, choices).id];
    }
    double high = std::accumulate(costs.begin(), costs.end(), 0.0);
    double low = std::max(high / stages_, *std::max_element(costs.begin(), costs.end()));
    for (int step = 0; step < kSteps && low < high; ++step) {
      const double bound = low + (high - low) / 2;
      (StagesNeeded(costs, bound) <= stages_ ? high : low) = bound;
    }
    return Fill(costs, high);
  }

 private:
  static constexpr int kSteps = 24;  ///< within 2^-24 of the total

  /// Above the bound by rounding alone is still within it.
  static bool Exceeds(double sum, double bound) { return sum > bound * (1 + 1e-9); }

  static int StagesNeeded(std::span<const double> costs, double bound) {
    int stages = 1;
    double sum = 0.0;
    for (const double cost : costs) {
      if (Exceeds(sum + cost, bound)) {
        ++stages;
        sum = 0.0;
      }
      sum += cost;
    }
    return stages;
  }

  StageRanges Fill(std::span<const double> costs, double bound) const {
    std::vector<int> first = {0};
    double sum = 0.0;
    for (int position = 0; position < space_.positions(); ++position) {
      const int stages_left = stages_ - static_cast<int>(first.size());
      // Every stage that is left needs a position, so the last ones may get no more than that.
      const bool must_move = space_.positions() - position <= stages_left;
      const bool is_full = Exceeds(sum + costs[position], bound) && stages_left > 0;
      if (position > first.back() && (is_full || must_move)) {
        first.push_back(position);
        sum = 0.0;
      }
      sum += costs[position];
    }
    first.push_back(space_.positions());
    return StageRanges(std::move(first));
  }

  const SearchSpace& space_;
  const int stages_;
  std::vector<double> costs_;  ///< by layer: forward + backward
};

StageRanges EqualRanges(const SearchSpace& space, int stages) {
  std::vector<int> first = {0};
  for (int stage = 0; stage < stages; ++stage) {
    const int size = space.positions() / stages + (stage < space.positions() % stages ? 1 : 0);
    first.push_back(first.back() + size);
  }
  return StageRanges(std::move(first));
}

Result<std::vector<int>> ParseSizes(const std::string& text) {
  std::vector<int> sizes;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    int size = 0;
    const auto [next, error] = std::from_chars(at, end, size);
    if (error != std::errc{} || (next != end && *next != ',')) {
      return UsageError(fmt::format("--partition {}: no such partition", text),
                        "use equal, balanced, or the number of positions of each stage, such as "
                        "6,6,5");
    }
    sizes.push_back(size);
    if (next == end) return sizes;
    at = next + 1;
  }
}

/// What is wrong with explicit sizes; empty where nothing is.
std::string ProblemOf(std::span<const int> sizes, const SearchSpace& space, std::int64_t stages) {
  std::int64_t sum = 0;
  for (std::size_t stage = 0; stage < sizes.size(); ++stage) {
    if (sizes[stage] < 1) return fmt::format("stage {} would be empty", stage);
    sum += sizes[stage];
  }
  if (std::ssize(sizes) != stages) {
    return fmt::format("it gives {} stages, but --stages is {}", sizes.size(), stages);
  }
  if (sum != space.positions()) {
    return fmt::format("it gives {} positions, but there are {}", sum, space.positions());
  }
  return "";
}

Result<StageRanges> ReadSizes(const std::string& text, const SearchSpace& space,
                              std::int64_t stages) {
  ASSIGN_OR_RETURN(const std::vector<int> sizes, ParseSizes(text));
  const std::string problem = ProblemOf(sizes, space, stages);
  if (!problem.empty()) {
    return UsageError(fmt::format("--partition {}: {}", text, problem),
                      fmt::format("give {} numbers of at least 1 that add up to {} positions "
                                  "(stem, {} blocks, head), or use equal or balanced",
                                  stages, space.positions(), space.blocks()));
  }
  std::vector<int> first = {0};
  for (const int size : sizes) first.push_back(first.back() + size);
  return StageRanges(std::move(first));
}

}  // namespace

int StageRanges::StageOf(int position) const {
  return static_cast<int>(std::upper_bound(first_.begin(), first_.end(), position) -
                          first_.begin()) -
         1;
}

Result<std::unique_ptr<Partition>> MakePartition(const std::string& name, const SearchSpace& space,
                                                 const CostTable& costs, std::int64_t stages) {
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
  if (name == "equal") {
    return std::make_unique<FixedPartition>(EqualRanges(space, static_cast<int>(stages)));
  }
  if (name == "balanced") {
    return std::make_unique<BalancedPartition>(space, costs, static_cast<int>(stages));
  }
  ASSIGN_OR_RETURN(StageRanges ranges, ReadSizes(name, space, stages));
  return std::make_unique<FixedPartition>(std::move(ranges));
}

}  // namespace verbatim
