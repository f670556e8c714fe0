#include "verify/step_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "recorder/step_layer.h"
#include "recorder/step_spec.h"
#include "verify/step_projection.h"
#include "verify/text.h"

namespace verbatim {
namespace {

std::string DigestText(const std::optional<Digest>& digest) {
  return !digest || *digest == Digest{} ? "none" : ToShortHex(*digest);
}

std::string LossText(std::uint32_t bits) {
  return bits == kNoLoss ? "NaN, or none (bits 0x7fc00000)" : FormatLoss(bits);
}

bool IsBuffer(const LayerRow& layer) {
  const auto text = ParseStepLayer(layer.op);
  return text && text->kind == StepLayerKind::kBuffer;
}

void Append(std::string& list, const std::string& item) {
  list += (list.empty() ? "" : ", ") + item;
}

std::string TextOf(const std::map<std::string, std::string>& settings, const std::string& name) {
  const auto found = settings.find(name);
  return found == settings.end() ? "none" : found->second;
}

}  // namespace

Difference StepComparison::At(DifferenceClass kind, std::string what) const {
  Difference difference;
  difference.run = RunKind::kSteps;
  difference.seq = a_.seq;
  difference.kind = kind;
  difference.what = std::move(what);
  return difference;
}

Difference StepComparison::AtLayer(DifferenceClass kind, std::string what, std::int32_t layer,
                                   Phase phase) const {
  Difference difference = At(kind, std::move(what));
  difference.layer = layer;
  difference.layer_name = table_.Name(layer);
  difference.phase = phase;
  return difference;
}

bool StepComparison::RowsDiffer() const {
  return a_.loss_bits != b_.loss_bits || a_.batch_digest != b_.batch_digest ||
         a_.step->outside != b_.step->outside || a_.step->parts != b_.step->parts ||
         a_.step->settings != b_.step->settings || a_.step->random_state != b_.step->random_state ||
         a_.activations != b_.activations;
}

std::optional<Difference> StepComparison::Outside() const {
  const std::vector<std::int32_t>& of_a = a_.step->outside;
  const std::vector<std::int32_t>& of_b = b_.step->outside;
  std::vector<std::int32_t> only;
  std::ranges::set_symmetric_difference(of_a, of_b, std::back_inserter(only));
  if (only.empty()) return std::nullopt;
  const bool in_a = std::ranges::binary_search(of_a, only.front());
  Difference difference =
      AtLayer(DifferenceClass::kSchedule, "version read", only.front(), Phase::kForward);
  difference.recorded = in_a ? "one written from outside" : "what the update before left";
  difference.expected = in_a ? "what the update before left" : "one written from outside";
  difference.cause = fmt::format("in {} {} was written before step {} read it, by no update",
                                 in_a ? names_.a : names_.b, difference.layer_name, a_.seq);
  if (only.size() > 1) {
    difference.cause += fmt::format(
        "; likewise {}", FormatCount(std::ssize(only) - 1, "other layer", "other layers"));
  }
  return difference;
}

std::optional<Difference> StepComparison::Parts() const {
  const std::vector<Digest>& of_a = a_.step->parts;
  const std::vector<Digest>& of_b = b_.step->parts;
  if (of_a == of_b) return std::nullopt;
  const bool is_order = std::ranges::is_permutation(of_a, of_b);
  Difference difference =
      At(is_order ? DifferenceClass::kSampleOrder : DifferenceClass::kBatchBytes, "batch");
  if (of_a.size() != of_b.size()) {
    difference.recorded = FormatCount(std::ssize(of_a), "part", "parts");
    difference.expected = FormatCount(std::ssize(of_b), "part", "parts");
    difference.cause = "the batch has another number of parts";
    return difference;
  }
  const auto [left, right] = std::ranges::mismatch(of_a, of_b);
  const auto place = left - of_a.begin();
  difference.recorded = fmt::format("part {}: {}", place, DigestText(*left));
  difference.expected = fmt::format("part {}: {}", place, DigestText(*right));
  difference.cause = is_order ? "the same parts of the batch, in another order"
                              : fmt::format("part {} of {} has other bytes", place, of_a.size());
  return difference;
}

std::optional<Difference> StepComparison::Batch() const {
  auto difference = Parts();
  if (difference || a_.batch_digest == b_.batch_digest) return difference;
  difference = At(DifferenceClass::kBatchBytes, "batch");
  difference->recorded = DigestText(a_.batch_digest);
  difference->expected = DigestText(b_.batch_digest);
  difference->cause =
      "other samples, or the same in another order or with other bytes: the data, its shuffling or "
      "its preparation is another";
  return difference;
}

std::optional<Difference> StepComparison::Settings() const {
  if (a_.step->settings == b_.step->settings) return std::nullopt;
  Difference difference = At(DifferenceClass::kSettings, "hyper-parameters");
  auto all = a_.step->settings;
  all.insert(b_.step->settings.begin(), b_.step->settings.end());
  for (const auto& [name, value] : all) {
    const std::string of_a = TextOf(a_.step->settings, name);
    const std::string of_b = TextOf(b_.step->settings, name);
    if (of_a == of_b) continue;
    Append(difference.recorded, fmt::format("{}: {}", name, of_a));
    Append(difference.expected, fmt::format("{}: {}", name, of_b));
    Append(difference.cause, fmt::format("{}: {} / {}", name, of_a, of_b));
  }
  return difference;
}

std::optional<Difference> StepComparison::RandomState() const {
  if (a_.step->random_state == b_.step->random_state) return std::nullopt;
  Difference difference = At(DifferenceClass::kRandomState, "random state");
  difference.recorded = DigestText(a_.step->random_state);
  difference.expected = DigestText(b_.step->random_state);
  difference.cause =
      "before its forward pass the generators stood elsewhere: another seed, or other draws before";
  return difference;
}

std::optional<Difference> StepComparison::Captured() const {
  const auto [left, right] = std::ranges::mismatch(a_.activations, b_.activations);
  if (left == a_.activations.end() && right == b_.activations.end()) return std::nullopt;
  if (left == a_.activations.end() || right == b_.activations.end() ||
      std::pair(left->microbatch, left->position) !=
          std::pair(right->microbatch, right->position)) {
    Difference difference = At(DifferenceClass::kComputation, "captured tensors");
    difference.phase = Phase::kForward;
    difference.recorded = FormatCount(std::ssize(a_.activations), "tensor", "tensors");
    difference.expected = FormatCount(std::ssize(b_.activations), "tensor", "tensors");
    difference.cause = "modules ran more often on one side, or other ones did";
    return difference;
  }
  Difference difference =
      AtLayer(DifferenceClass::kComputation, "captured tensor", left->position, Phase::kForward);
  if (left->microbatch > 0) {
    difference.what += fmt::format(", occurrence {}", left->microbatch + 1);
  }
  difference.recorded = DigestText(left->digest);
  difference.expected = DigestText(right->digest);
  difference.cause = EqualInputs() + ", and the tensors captured before it; this one is not";
  return difference;
}

/// "the weights before it, the batch and the random state were equal": as far as both hold them.
std::string StepComparison::EqualInputs() const {
  std::vector<std::string> equal;
  const bool has_weights = std::ranges::any_of(
      a_.accesses, [](const AccessRow& access) { return access.weights.has_value(); });
  if (has_weights) equal.emplace_back("the weights before it");
  if (a_.batch_digest != Digest{}) equal.emplace_back("the batch");
  if (!a_.step->settings.empty()) equal.emplace_back("the hyper-parameters");
  if (a_.step->random_state) equal.emplace_back("the random state");
  if (equal.empty()) return "nothing recorded before it differs";
  std::string text;
  for (std::size_t i = 0; i < equal.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == equal.size() ? " and " : ", ") + equal[i];
  }
  const bool is_one = equal.size() == 1 && !has_weights && a_.step->settings.empty();
  return text + (is_one ? " was equal" : " were equal");
}

std::optional<Difference> StepComparison::Loss() const {
  if (a_.loss_bits == b_.loss_bits) return std::nullopt;
  Difference difference = At(DifferenceClass::kComputation, "loss");
  difference.phase = Phase::kForward;
  difference.recorded = LossText(a_.loss_bits);
  difference.expected = LossText(b_.loss_bits);
  difference.cause =
      a_.activations.empty()
          ? EqualInputs() + ", its loss is not; captured tensors would name the layer"
          : "all captured tensors were equal, the loss is not";
  return difference;
}

std::optional<Difference> StepComparison::AtDigest(const char* what, Phase phase,
                                                   std::size_t access,
                                                   std::optional<Digest> AccessRow::*digest,
                                                   const char* cause) const {
  const AccessRow& of_a = a_.accesses[access];
  const AccessRow& of_b = b_.accesses[access];
  if (of_a.*digest == of_b.*digest) return std::nullopt;
  Difference difference = AtLayer(DifferenceClass::kComputation, what, of_a.layer, phase);
  difference.recorded = DigestText(of_a.*digest);
  difference.expected = DigestText(of_b.*digest);
  difference.cause = cause;
  return difference;
}

std::optional<Difference> StepComparison::Buffers() const {
  const char* const cause =
      replicas_ ? "no parameter differs: each replica updates this buffer from its own part of the "
                  "batch, unless buffers are synchronized"
                : "the loss was equal, this buffer is not";
  for (std::size_t i = 0; i < a_.accesses.size(); ++i) {
    if (!IsBuffer(table_.layer(a_.accesses[i].layer))) continue;
    auto difference = AtDigest("buffer", Phase::kForward, i, &AccessRow::weights, cause);
    if (difference) return difference;
  }
  return std::nullopt;
}

/// From the last one down, as the backward pass goes; of replicas from the first one up.
std::optional<Difference> StepComparison::Parameters() const {
  const auto find = [&](const char* what, Phase phase, std::optional<Digest> AccessRow::*digest,
                        const char* cause) {
    std::optional<Difference> difference;
    const std::size_t count = a_.accesses.size();
    for (std::size_t i = 0; !difference && i < count; ++i) {
      const std::size_t access = replicas_ ? i : count - 1 - i;
      if (IsBuffer(table_.layer(a_.accesses[access].layer))) continue;
      difference = AtDigest(what, phase, access, digest, cause);
    }
    return difference;
  };
  const bool has_gradients = std::ranges::any_of(
      a_.accesses, [](const AccessRow& access) { return access.gradients.has_value(); });
  auto difference = find("gradients", Phase::kBackward, &AccessRow::gradients,
                         "the forward pass was equal, the gradients are not");
  if (difference) return difference;
  difference = find("weights", Phase::kUpdate, &AccessRow::weights,
                    replicas_       ? "the replicas were equal before this step"
                    : has_gradients ? "the gradients were equal, the updated layer is not"
                                    : "what came before the backward pass was equal, the updated "
                                      "layer is not; gradients, recorded, would tell the backward "
                                      "pass from the update");
  if (difference) return difference;
  return find("optimizer state", Phase::kUpdate, &AccessRow::optimizer_state,
              "the weights after the update were equal, the optimizer state is not");
}

std::optional<Difference> StepComparison::Layers() const {
  auto difference = replicas_ ? Parameters() : Buffers();
  if (!difference) difference = replicas_ ? Buffers() : Parameters();
  return difference;
}

std::optional<Difference> StepComparison::FirstInput() const {
  auto difference = Outside();
  if (!difference) difference = Batch();
  if (!difference) difference = Settings();
  if (!difference) difference = RandomState();
  return difference;
}

std::optional<Difference> StepComparison::First() const {
  auto difference = FirstInput();
  if (!difference) difference = Captured();
  if (!difference) difference = Loss();
  if (!difference) difference = Layers();
  return difference;
}

}  // namespace verbatim
