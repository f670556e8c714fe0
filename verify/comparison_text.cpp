#include "verify/comparison_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "verify/report.h"
#include "verify/run_words.h"
#include "verify/text.h"

namespace verbatim {
namespace {

constexpr std::size_t kShown = 10;
constexpr std::size_t kHolesNamed = 5;

std::string RangeText(const SeqRange& range) {
  return range.first == range.last ? fmt::format("{}", range.first)
                                   : fmt::format("{}–{}", range.first, range.last);
}

/// What lies between the ranges.
std::vector<SeqRange> Holes(const std::vector<SeqRange>& ranges) {
  std::vector<SeqRange> holes;
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    holes.push_back({ranges[i - 1].last + 1, ranges[i].first - 1});
  }
  return holes;
}

std::string ListText(const std::vector<SeqRange>& ranges) {
  std::string text;
  for (std::size_t i = 0; i < std::min(ranges.size(), kShown); ++i) {
    text += (i == 0 ? "" : ", ") + RangeText(ranges[i]);
  }
  const auto more = static_cast<std::int64_t>(ranges.size()) - static_cast<std::int64_t>(kShown);
  if (more > 0) text += fmt::format(" and {} more", FormatCount(more, "range", "ranges"));
  return text;
}

/// A long range is easier to read with its few holes named than cut up by them.
bool IsMostlyWhole(const std::vector<SeqRange>& ranges, const std::vector<SeqRange>& holes) {
  if (holes.empty() || holes.size() > kHolesNamed) return false;
  std::int64_t missing = 0;
  for (const SeqRange& hole : holes) missing += hole.last - hole.first + 1;
  return 4 * missing <= ranges.back().last - ranges.front().first;
}

std::string OriginsText(const Comparison& comparison) {
  std::string text =
      fmt::format("\n{}\n", FormatCount(comparison.origin_count, "origin", "origins"));
  const std::size_t shown = std::min(kShown, comparison.origins.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const Difference& origin = comparison.origins[i];
    text += fmt::format("  {}: {} ({})\n", PlaceText(origin), origin.what, ToString(origin.kind));
  }
  const std::int64_t more = comparison.origin_count - static_cast<std::int64_t>(shown);
  if (more > 0) text += fmt::format("  and {} more\n", FormatCount(more));
  return text;
}

/// Tainted subnets in each tenth of those that were compared, as far as seq tells.
std::array<std::int64_t, 10> PerTenth(const Comparison& comparison) {
  std::array<std::int64_t, 10> counts{};
  const std::int64_t subnets = std::max(comparison.subnets_compared, std::int64_t{1});
  for (const SeqRange& range : comparison.tainted) {
    for (std::int64_t tenth = 0; tenth < 10; ++tenth) {
      const std::int64_t first = std::max(range.first, (tenth * subnets + 9) / 10);
      const std::int64_t last = std::min(range.last, ((tenth + 1) * subnets + 9) / 10 - 1);
      counts[static_cast<std::size_t>(tenth)] += std::max(last - first + 1, std::int64_t{0});
    }
  }
  return counts;
}

std::string TaintedText(const Comparison& comparison, RunKind kind) {
  std::string text =
      fmt::format("\n{} tainted {} of {}: {}\n", FormatCount(comparison.tainted_count),
                  comparison.tainted_count == 1 ? WordsOf(kind).one : WordsOf(kind).many,
                  FormatCount(comparison.subnets_compared), RangesText(comparison.tainted));
  // Numbers of steps need not begin at 0, nor be consecutive.
  if (comparison.subnets_compared < 20 || kind == RunKind::kSteps) return text;
  text += "  per tenth of the run";
  for (const std::int64_t count : PerTenth(comparison)) text += " " + FormatCount(count);
  return text + "\n";
}

std::string LayersText(const Comparison& comparison, RunKind kind) {
  std::string text =
      fmt::format("\n{} of {} differ, in {}\n", FormatCount(comparison.accesses_different),
                  FormatCount(comparison.accesses_compared, "access", "accesses"),
                  FormatCount(std::ssize(comparison.layers), "layer", "layers"));
  const std::size_t shown = std::min(kShown, comparison.layers.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const LayerTaint& layer = comparison.layers[i];
    text += fmt::format("  {:<12} from {} {}, {}\n", layer.name, WordsOf(kind).one, layer.first_seq,
                        FormatCount(layer.accesses, "access", "accesses"));
  }
  const auto more = std::ssize(comparison.layers) - static_cast<std::int64_t>(shown);
  if (more > 0) text += fmt::format("  and {} more\n", FormatCount(more));
  return text;
}

}  // namespace

std::string RangesText(const std::vector<SeqRange>& ranges) {
  const std::vector<SeqRange> holes = Holes(ranges);
  if (!IsMostlyWhole(ranges, holes)) return ListText(ranges);
  return fmt::format("{} but {}", RangeText({ranges.front().first, ranges.back().last}),
                     ListText(holes));
}

std::string ComparisonText(const Comparison& comparison, RunKind kind) {
  std::string text;
  if (comparison.origin_count > 0) text += OriginsText(comparison);
  if (comparison.tainted_count > 0) text += TaintedText(comparison, kind);
  if (comparison.accesses_different > 0) text += LayersText(comparison, kind);
  return text;
}

}  // namespace verbatim
