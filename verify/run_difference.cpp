#include "verify/run_difference.h"

#include <fmt/format.h>

#include <algorithm>

#include "verify/text.h"

namespace verbatim {
namespace {

Difference AtLayer(DifferenceClass kind, const char* what, const LayerRow& layer) {
  Difference difference;
  difference.kind = kind;
  difference.what = what;
  difference.layer = layer.layer;
  difference.layer_name = layer.name;
  return difference;
}

bool IsSameLayer(const LayerRow& a, const LayerRow& b) {
  return a.layer == b.layer && a.name == b.name && a.position == b.position &&
         a.candidate == b.candidate && a.op == b.op && a.versioned == b.versioned;
}

bool HasSameWeights(const LayerRow& a, const LayerRow& b) {
  return a.initial_digest == b.initial_digest;
}

}  // namespace

std::optional<Difference> CompareDataSets(const Digest& recorded, const Digest& here) {
  if (recorded == here) return std::nullopt;
  Difference difference;
  difference.kind = DifferenceClass::kBatchBytes;
  difference.what = "data set";
  difference.recorded = ToShortHex(recorded);
  difference.expected = ToShortHex(here);
  return difference;
}

std::optional<Difference> CompareLayouts(const std::vector<LayerRow>& recorded,
                                         const std::vector<LayerRow>& here) {
  const auto [left, right] =
      std::mismatch(recorded.begin(), recorded.end(), here.begin(), here.end(), IsSameLayer);
  if (left == recorded.end() && right == here.end()) return std::nullopt;
  if (left != recorded.end() && right != here.end()) {
    Difference difference = AtLayer(DifferenceClass::kSpec, "layer", *left);
    difference.recorded = fmt::format("{}: {}", left->name, left->op);
    difference.expected = fmt::format("{}: {}", right->name, right->op);
    difference.cause = "the spec lays out another layer here";
    return difference;
  }
  Difference difference;
  difference.kind = DifferenceClass::kSpec;
  difference.what = "layers";
  difference.recorded = FormatCount(std::ssize(recorded), "layer", "layers");
  difference.expected = FormatCount(std::ssize(here), "layer", "layers");
  difference.cause = "the spec lays out another number of layers";
  return difference;
}

std::optional<Difference> CompareInitialWeights(const std::vector<LayerRow>& recorded,
                                                const std::vector<LayerRow>& here) {
  const auto [left, right] =
      std::mismatch(recorded.begin(), recorded.end(), here.begin(), here.end(), HasSameWeights);
  if (left == recorded.end() || right == here.end()) return std::nullopt;
  Difference difference = AtLayer(DifferenceClass::kInitialWeights, "initial weights", *left);
  difference.recorded = ToShortHex(left->initial_digest);
  difference.expected = ToShortHex(right->initial_digest);
  difference.cause = "the layer was initialised otherwise";
  std::int64_t more = 0;
  for (std::size_t i = 0; i < std::min(recorded.size(), here.size()); ++i) {
    more += HasSameWeights(recorded[i], here[i]) ? 0 : 1;
  }
  if (--more > 0) {
    difference.cause +=
        fmt::format(", and {} more {} too", FormatCount(more), more == 1 ? "was" : "were");
  }
  return difference;
}

std::optional<Difference> CompareEvaluations(const std::vector<EvaluationRow>& recorded,
                                             const std::vector<EvaluationRow>& here) {
  const auto [left, right] =
      std::mismatch(recorded.begin(), recorded.end(), here.begin(), here.end());
  if (left == recorded.end() && right == here.end()) return std::nullopt;
  Difference difference;
  difference.after_last = true;
  difference.phase = Phase::kForward;
  difference.what = fmt::format("evaluation {}", left - recorded.begin());
  const auto text = [](const std::vector<EvaluationRow>& rows, auto at) {
    return at == rows.end() ? FormatCount(std::ssize(rows), "evaluation", "evaluations")
                            : fmt::format("{} of {} correct", at->correct, at->total);
  };
  difference.recorded = text(recorded, left);
  difference.expected = text(here, right);
  const bool both = left != recorded.end() && right != here.end();
  if (both && left->choices == right->choices) {
    difference.cause = "all recorded subnets were equal, the evaluation with their weights is not";
  } else {
    difference.kind = DifferenceClass::kSpec;
    difference.cause = "other subnets were evaluated than the recorded spec asks for";
  }
  return difference;
}

}  // namespace verbatim
