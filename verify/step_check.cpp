#include "verify/step_check.h"

#include <fmt/format.h>

#include <set>
#include <string_view>
#include <utility>

#include "verify/run_words.h"

namespace verbatim {

std::optional<std::string> StepLayersProblem(const std::vector<LayerRow>& layers) {
  std::set<std::string_view> names;
  for (const LayerRow& row : layers) {
    if (!names.insert(row.name).second) return fmt::format("two layers are called '{}'", row.name);
    const auto text = ParseStepLayer(row.op);
    if (!text)
      return fmt::format("layer {} ({}) is '{}', which is unknown", row.layer, row.name, row.op);
    const bool versioned = text->kind != StepLayerKind::kCaptured;
    if (row.versioned != versioned) {
      return fmt::format("layer {} ({}) is {}versioned, but should {}be", row.layer, row.name,
                         row.versioned ? "" : "not ", versioned ? "" : "not ");
    }
  }
  return std::nullopt;
}

StepCheck::StepCheck(const RunInfo& run, const StepSpec& spec, const LayerTable& table)
    : run_(run),
      table_(table),
      weights_(run.record_level != "losses"),
      optimizer_state_(weights_ && spec.optimizer_state),
      gradients_(run.record_level == "full" && spec.gradients),
      full_(run.record_level == "full") {
  for (const LayerRow& row : table.layers()) {
    const auto text = ParseStepLayer(row.op);
    kinds_.push_back(text ? text->kind : StepLayerKind::kParameter);
    if (row.versioned) versioned_.push_back(row.layer);
  }
}

bool StepCheck::IsVersioned(std::int32_t layer) const {
  return layer >= 0 && layer < std::ssize(kinds_) &&
         kinds_[static_cast<std::size_t>(layer)] != StepLayerKind::kCaptured;
}

std::optional<std::string> StepCheck::Problem(const SubnetRow& row) {
  if (!row.step) return fmt::format("row {} has no step", row.seq);
  std::optional<std::string> problem = FactsProblem(row);
  if (!problem && !(row.choices.empty() && row.samples.empty())) {
    problem = "has choices or samples, which no step has";
  }
  if (!problem) problem = AccessesProblem(row);
  if (!problem) problem = CapturedProblem(row);
  if (problem) problem = fmt::format("{} {}", NameOf(row), *problem);
  return problem;
}

std::optional<std::string> StepCheck::FactsProblem(const SubnetRow& row) {
  const std::int64_t step = row.step->step;
  const std::optional<std::int64_t> last = std::exchange(last_step_, step);
  if (last && step <= *last) return fmt::format("comes after step {}", *last);
  for (const std::int32_t layer : row.step->outside) {
    if (IsVersioned(layer)) continue;
    return fmt::format("says that {} was written from outside, which has no versions",
                       table_.Name(layer));
  }
  return std::nullopt;
}

std::optional<std::string> StepCheck::AccessesProblem(const SubnetRow& row) const {
  std::size_t next = 0;
  for (const AccessRow& access : row.accesses) {
    const bool is_next = next < versioned_.size() && access.layer == versioned_[next];
    if (is_next) {
      ++next;
      if (auto problem = AccessProblem(row.seq, access)) return problem;
      continue;
    }
    if (next < versioned_.size() && access.layer > versioned_[next]) break;
    return fmt::format("has an access of {}, which has none, or two of it",
                       table_.Name(access.layer));
  }
  if (next == versioned_.size()) return std::nullopt;
  return fmt::format("has no access of {}", table_.Name(versioned_[next]));
}

std::optional<std::string> StepCheck::AccessProblem(std::int64_t seq,
                                                    const AccessRow& access) const {
  const auto about = [&](std::string_view problem) {
    return fmt::format("has an access of {} {}", table_.Name(access.layer), problem);
  };
  if (access.read_seq != seq - 1 || access.base_seq != seq - 1) {
    return about("that did not read and update the version of the step before");
  }
  if (access.stage != 0) return about(fmt::format("on stage {} of 1", access.stage));
  const bool is_parameter =
      kinds_[static_cast<std::size_t>(access.layer)] == StepLayerKind::kParameter;
  const bool extra_state = access.optimizer_state && !(optimizer_state_ && is_parameter);
  const bool extra_gradients = access.gradients && !(gradients_ && is_parameter);
  if (access.weights.has_value() != weights_ || extra_state || extra_gradients) {
    return about(
        fmt::format("whose digests are not those of level {} and its spec", run_.record_level));
  }
  return std::nullopt;
}

std::optional<std::string> StepCheck::CapturedProblem(const SubnetRow& row) const {
  std::pair<std::int32_t, std::int32_t> last{-1, -1};
  for (const ActivationRow& captured : row.activations) {
    const bool exists = captured.position >= 0 && captured.position < std::ssize(kinds_) &&
                        !IsVersioned(captured.position) && captured.microbatch >= 0 && full_;
    if (!exists) {
      return fmt::format("has a captured tensor of {}, which is none",
                         table_.Name(captured.position));
    }
    const std::pair<std::int32_t, std::int32_t> place{captured.microbatch, captured.position};
    if (place <= last) return "has captured tensors out of order";
    last = place;
  }
  return std::nullopt;
}

}  // namespace verbatim
