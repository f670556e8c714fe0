#include "verify/step_projection.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "recorder/step_spec.h"

namespace verbatim {
namespace {

/// What is compared where both sides could have it.
void Complete(bool is_compared, std::optional<Digest>& a, std::optional<Digest>& b) {
  if (!is_compared) {
    a.reset();
    b.reset();
  } else if (a.has_value() != b.has_value()) {
    (a ? b : a).emplace();
  }
}

}  // namespace

void StepProjection::Take(const SubnetRow& row, const std::vector<std::int32_t>& common,
                          std::int64_t before, std::set<std::int32_t>& skipped,
                          SubnetRow& into) const {
  const auto id_of = [&](std::int32_t layer) { return common[static_cast<std::size_t>(layer)]; };
  into.seq = row.step->step;
  into.batch_digest = row.batch_digest;
  into.loss_bits = row.loss_bits;
  into.step = row.step;
  into.accesses.clear();
  for (AccessRow access : row.accesses) {
    access.layer = id_of(access.layer);
    if (access.layer < 0) continue;
    access.read_seq = access.base_seq = before;
    into.accesses.push_back(access);
  }
  std::ranges::sort(into.accesses, {}, &AccessRow::layer);
  into.activations.clear();
  for (ActivationRow captured : row.activations) {
    captured.position = id_of(captured.position);
    if (captured.position >= 0) into.activations.push_back(captured);
  }
  std::ranges::sort(into.activations, {}, [](const ActivationRow& captured) {
    return std::pair(captured.microbatch, captured.position);
  });
  into.step->outside.clear();
  KeepOutside(row, skipped);
  for (const std::int32_t layer : std::exchange(skipped, {})) {
    if (id_of(layer) >= 0) into.step->outside.push_back(id_of(layer));
  }
  std::ranges::sort(into.step->outside);
}

void StepProjection::Project(const SubnetRow& a, const SubnetRow& b, std::int64_t before,
                             bool whole_model) {
  Take(a, matching_.common_of_a, before, skipped_of_a_, a_);
  Take(b, matching_.common_of_b, before, skipped_of_b_, b_);
  if (whole_model) {
    AccessRow access;
    access.layer = matching_.a.back().layer;
    access.read_seq = access.base_seq = before;
    a_.accesses.push_back(access);
    b_.accesses.push_back(access);
  }
  VERBATIM_CHECK(a_.seq == b_.seq && a_.accesses.size() == b_.accesses.size(), "steps {} and {}",
                 a_.seq, b_.seq);
  LeaveOutWhatOneLacks();
}

void StepProjection::LeaveOutOutside() {
  a_.step->outside.clear();
  b_.step->outside.clear();
}

void StepProjection::LeaveOutWhatOneLacks() {
  StepFacts& facts_a = *a_.step;
  StepFacts& facts_b = *b_.step;
  if (!scope_.losses || scope_.replicas) a_.loss_bits = b_.loss_bits = kNoLoss;
  const bool has_batches = a_.batch_digest != Digest{} && b_.batch_digest != Digest{};
  if (!has_batches || scope_.replicas) a_.batch_digest = b_.batch_digest = Digest{};
  if (facts_a.parts.empty() || facts_b.parts.empty() || scope_.replicas) {
    facts_a.parts.clear();
    facts_b.parts.clear();
  }
  if (!facts_a.random_state || !facts_b.random_state || scope_.replicas) {
    facts_a.random_state.reset();
    facts_b.random_state.reset();
  }
  if (facts_a.settings.empty() || facts_b.settings.empty()) {
    facts_a.settings.clear();
    facts_b.settings.clear();
  }
  if (a_.activations.empty() || b_.activations.empty() || scope_.replicas) {
    a_.activations.clear();
    b_.activations.clear();
  }
  for (std::size_t i = 0; i < a_.accesses.size(); ++i) {
    AccessRow& of_a = a_.accesses[i];
    AccessRow& of_b = b_.accesses[i];
    Complete(of_a.weights && of_b.weights, of_a.weights, of_b.weights);
    Complete(scope_.optimizer_state, of_a.optimizer_state, of_b.optimizer_state);
    Complete(scope_.gradients && !scope_.replicas, of_a.gradients, of_b.gradients);
  }
}

}  // namespace verbatim
