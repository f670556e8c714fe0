#include "verify/explanation_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>

#include "verify/text.h"

namespace verbatim {
namespace {

using Lines = std::vector<std::pair<std::string, std::string>>;

constexpr const char* kTimingText =
    ": an asynchronous run depends on its timing, which does not come again";
constexpr const char* kOutsideText =
    ": what made them was no part of the computation (a row that was edited, hardware that failed "
    "once) or is not recorded";

std::string ElementText(float value) {
  return FormatLoss(std::bit_cast<std::uint32_t>(value));
}

/// What each side is called.
std::pair<const char*, const char*> SideNames(const Verdict& verdict) {
  if (verdict.kind == VerdictKind::kDiff) return {"A", "B"};
  return {"the recorded run", "the reference"};
}

void AddTensor(const TensorDifference& tensor, const Verdict& verdict, Lines& lines) {
  const auto [left, right] = SideNames(verdict);
  lines.emplace_back(
      "where", fmt::format("{} ({}), {}: {} [{}]", tensor.layer_name, tensor.op,
                           ToString(tensor.phase), tensor.tensor, fmt::join(tensor.shape, " × ")));
  if (tensor.index.size() != tensor.shape.size()) {
    lines.emplace_back("element", "the shapes differ");
    return;
  }
  lines.emplace_back("element",
                     fmt::format("[{}]: {} in {}, {} in {}", fmt::join(tensor.index, ", "),
                                 ElementText(tensor.left), left, ElementText(tensor.right), right));
  lines.emplace_back("extent", fmt::format("{} of {} differ, by at most {}",
                                           FormatCount(tensor.elements_different),
                                           FormatCount(tensor.elements, "element", "elements"),
                                           FormatNumber(tensor.largest_difference, 3)));
}

void AddReproduction(const Explanation& explanation, const Verdict& verdict, Lines& lines) {
  const auto [left, right] = SideNames(verdict);
  const auto add = [&](const char* side, bool reproduced, const std::string& policy) {
    std::string text = fmt::format("{}, executed again as it was, {} the recorded numbers", side,
                                   reproduced ? "gives" : "does not give");
    if (!reproduced) text += policy == "asynchronous" ? kTimingText : kOutsideText;
    lines.emplace_back("replayed", std::move(text));
  };
  add(left, explanation.left_reproduced, explanation.left_policy);
  if (verdict.kind == VerdictKind::kDiff || verdict.is_reference_difference) {
    add(right, explanation.right_reproduced, explanation.right_policy);
  }
}

}  // namespace

Lines ExplanationLines(const Verdict& verdict) {
  Lines lines;
  if (!verdict.explanation_obstacle.empty()) {
    lines.emplace_back("not explained", verdict.explanation_obstacle);
  }
  if (!verdict.explanation) return lines;
  if (verdict.explanation->first) {
    AddTensor(*verdict.explanation->first, verdict, lines);
  } else {
    lines.emplace_back("where",
                       "no tensor of the subnet differs when both sides are executed again");
  }
  AddReproduction(*verdict.explanation, verdict, lines);
  return lines;
}

}  // namespace verbatim
