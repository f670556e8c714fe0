#include "schedule/recompute.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

namespace verbatim {
namespace {

/// As typed: the first and the last block.
struct BlockRange {
  int first = 0;
  int last = 0;
};

std::optional<int> ParseBlock(std::string_view text) {
  int block = 0;
  const char* const end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, block);
  return error == std::errc{} && next == end && block >= 0 ? std::optional(block) : std::nullopt;
}

/// "7" or "1-12".
std::optional<BlockRange> ParseRange(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = ParseBlock(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : ParseBlock(text.substr(dash + 1));
  return first && last ? std::optional(BlockRange{*first, *last}) : std::nullopt;
}

/// What is wrong with a range that comes after block `before`; empty where nothing is.
std::string ProblemOf(const BlockRange& range, int before, const SearchSpace& space) {
  if (range.last < range.first) {
    return fmt::format("{}-{} ends before it begins", range.first, range.last);
  }
  if (range.first < 1) return "there is no block 0: the stem is always kept";
  if (range.last > space.blocks()) {
    return fmt::format("there is no block {}: this supernet has {}", range.last, space.blocks());
  }
  if (range.first <= before) {
    return fmt::format("block {} does not come after block {}", range.first, before);
  }
  return "";
}

Result<std::vector<RangeSegment>> ReadRanges(const std::string& text, const SearchSpace& space) {
  const auto refuse = [&](const std::string& problem) {
    return UsageError(fmt::format("--recompute {}: {}", text, problem),
                      fmt::format("use none, all, or ranges of blocks from 1 to {}, ascending and "
                                  "without a block in common, such as 1-{},{}",
                                  space.blocks(), std::max(1, space.blocks() - 1), space.blocks()));
  };
  std::vector<RangeSegment> ranges;
  std::string_view rest = text;
  while (true) {
    const std::size_t comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    const auto range = ParseRange(word);
    if (!range) return refuse(fmt::format("\"{}\" is no range of blocks", word));
    const std::string problem =
        ProblemOf(*range, ranges.empty() ? 0 : ranges.back().end - 1, space);
    if (!problem.empty()) return refuse(problem);
    ranges.push_back({range->first, range->last + 1, /*recomputes=*/true});
    if (comma == std::string_view::npos) return ranges;
    rest = rest.substr(comma + 1);
  }
}

}  // namespace

Result<RecomputePlan> RecomputePlan::Make(const std::string& name, const SearchSpace& space) {
  if (name == "none") return RecomputePlan();
  if (name != "all") {
    ASSIGN_OR_RETURN(std::vector<RangeSegment> ranges, ReadRanges(name, space));
    return RecomputePlan(std::move(ranges));
  }
  std::vector<RangeSegment> ranges;
  for (int block = 1; block <= space.blocks(); ++block) {
    ranges.push_back({block, block + 1, /*recomputes=*/true});
  }
  return RecomputePlan(std::move(ranges));
}

std::vector<RangeSegment> RecomputePlan::Segments(int begin, int end) const {
  std::vector<RangeSegment> segments;
  int next = begin;
  for (const RangeSegment& range : ranges_) {
    const int first = std::max(range.begin, begin);
    const int last = std::min(range.end, end);
    if (first >= last) continue;
    if (next < first) segments.push_back({next, first, /*recomputes=*/false});
    segments.push_back({first, last, /*recomputes=*/true});
    next = last;
  }
  if (next < end) segments.push_back({next, end, /*recomputes=*/false});
  return segments;
}

CostTable RecomputePlan::Costs(CostTable costs, const SearchSpace& space) const {
  std::vector<bool> recomputes(static_cast<std::size_t>(space.positions()));
  for (const RangeSegment& range : ranges_) {
    std::fill(recomputes.begin() + range.begin, recomputes.begin() + range.end, true);
  }
  for (const Layer& layer : space.layers()) {
    LayerCost& cost = costs.layers[static_cast<std::size_t>(layer.id)];
    if (recomputes[static_cast<std::size_t>(layer.position)]) cost.backward += cost.forward;
  }
  return costs;
}

}  // namespace verbatim
