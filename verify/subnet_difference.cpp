#include "verify/subnet_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "verify/stream_check.h"
#include "verify/text.h"

namespace verbatim {
namespace {

Difference At(DifferenceClass kind, std::string what) {
  Difference difference;
  difference.kind = kind;
  difference.what = std::move(what);
  return difference;
}

Difference AtLayer(DifferenceClass kind, std::string what, const LayerRow& layer, Phase phase) {
  Difference difference = At(kind, std::move(what));
  difference.layer = layer.layer;
  difference.layer_name = layer.name;
  difference.phase = phase;
  return difference;
}

std::optional<Difference> CompareSamples(const SubnetRow& recorded, const SubnetRow& here) {
  const auto [left, right] = std::mismatch(recorded.samples.begin(), recorded.samples.end(),
                                           here.samples.begin(), here.samples.end());
  if (left == recorded.samples.end() && right == here.samples.end()) return std::nullopt;
  Difference difference = At(DifferenceClass::kSampleOrder, "samples");
  const auto place = left - recorded.samples.begin();
  const auto text = [place](const std::vector<std::uint32_t>& samples, auto at) {
    return at == samples.end() ? fmt::format("{} samples", samples.size())
                               : fmt::format("sample {} at place {}", *at, place);
  };
  difference.recorded = text(recorded.samples, left);
  difference.expected = text(here.samples, right);
  const bool is_same_set = std::is_permutation(recorded.samples.begin(), recorded.samples.end(),
                                               here.samples.begin(), here.samples.end());
  difference.cause = is_same_set ? "the same samples, in another order"
                                 : "the batch was drawn from another split, or with another seed";
  return difference;
}

std::optional<Difference> CompareBatch(const SubnetRow& recorded, const SubnetRow& here) {
  if (recorded.batch_digest == here.batch_digest) return std::nullopt;
  Difference difference = At(DifferenceClass::kBatchBytes, "batch");
  difference.recorded = ToShortHex(recorded.batch_digest);
  difference.expected = ToShortHex(here.batch_digest);
  difference.cause =
      "the same samples were drawn, but their bytes differ: the data was changed, or "
      "is normalised otherwise";
  return difference;
}

/// The row at which both sides have the same layers; accesses follow from the choices.
bool SameLayers(const SubnetRow& recorded, const SubnetRow& here) {
  return std::equal(recorded.accesses.begin(), recorded.accesses.end(), here.accesses.begin(),
                    here.accesses.end(),
                    [](const AccessRow& a, const AccessRow& b) { return a.layer == b.layer; });
}

std::optional<Difference> CompareVersion(const LayerTable& table, const AccessRow& recorded,
                                         std::int64_t observed, std::int64_t expected,
                                         Phase phase) {
  if (observed == expected) return std::nullopt;
  const bool is_read = phase == Phase::kForward;
  Difference difference =
      AtLayer(DifferenceClass::kSchedule, is_read ? "version read" : "version updated",
              table.layer(recorded.layer), phase);
  difference.recorded = FormatVersion(observed);
  difference.expected = FormatVersion(expected);
  difference.cause = fmt::format("stage {} {} another version than the causal predecessor's",
                                 recorded.stage, is_read ? "read" : "updated");
  return difference;
}

std::optional<Difference> CompareReads(const LayerTable& table, const SubnetRow& recorded,
                                       const SubnetRow& here) {
  for (std::size_t i = 0; i < recorded.accesses.size(); ++i) {
    const AccessRow& access = recorded.accesses[i];
    if (auto difference = CompareVersion(table, access, access.read_seq, here.accesses[i].read_seq,
                                         Phase::kForward)) {
      return difference;
    }
  }
  return std::nullopt;
}

std::vector<ActivationRow> InForwardOrder(std::vector<ActivationRow> rows) {
  std::sort(rows.begin(), rows.end(), [](const ActivationRow& a, const ActivationRow& b) {
    return std::pair(a.microbatch, a.position) < std::pair(b.microbatch, b.position);
  });
  return rows;
}

std::optional<Difference> CompareActivations(const LayerTable& table, const SubnetRow& recorded,
                                             const SubnetRow& here) {
  if (recorded.activations.empty() || here.activations.empty()) return std::nullopt;
  const auto left = InForwardOrder(recorded.activations);
  const auto right = InForwardOrder(here.activations);
  for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    if (left[i] == right[i]) continue;
    const LayerRow& layer = table.layer(table.LayerAt(left[i].position, recorded.choices));
    Difference difference = AtLayer(DifferenceClass::kComputation,
                                    fmt::format("activation of micro-batch {}", left[i].microbatch),
                                    layer, Phase::kForward);
    difference.recorded = ToShortHex(left[i].digest);
    difference.expected = ToShortHex(right[i].digest);
    difference.cause = fmt::format("the inputs of {} were equal, its output is not", layer.name);
    return difference;
  }
  if (left.size() == right.size()) return std::nullopt;
  Difference difference = At(DifferenceClass::kSpec, "activations");
  difference.recorded = FormatCount(std::ssize(left), "activation", "activations");
  difference.expected = FormatCount(std::ssize(right), "activation", "activations");
  difference.cause = "the batch was cut into other micro-batches";
  return difference;
}

std::optional<Difference> CompareLoss(const SubnetRow& recorded, const SubnetRow& here) {
  if (recorded.loss_bits == here.loss_bits) return std::nullopt;
  Difference difference = At(DifferenceClass::kComputation, "loss");
  difference.phase = Phase::kForward;
  difference.recorded = FormatLoss(recorded.loss_bits);
  difference.expected = FormatLoss(here.loss_bits);
  difference.cause =
      recorded.activations.empty()
          ? "the weights read and the batch were equal, the loss is not; a record at "
            "level full would name the layer"
          : "all activations were equal, the loss is not";
  return difference;
}

std::optional<Difference> CompareDigest(const LayerRow& layer, const char* what, Phase phase,
                                        const std::optional<Digest>& recorded,
                                        const std::optional<Digest>& here, const char* cause) {
  // Absent where a record's level does not hold it.
  if (!recorded || !here || recorded == here) return std::nullopt;
  Difference difference = AtLayer(DifferenceClass::kComputation, what, layer, phase);
  difference.recorded = ToShortHex(*recorded);
  difference.expected = ToShortHex(*here);
  difference.cause = cause;
  return difference;
}

std::optional<Difference> CompareAccess(const LayerTable& table, const AccessRow& recorded,
                                        const AccessRow& here) {
  const LayerRow& layer = table.layer(recorded.layer);
  auto difference =
      CompareVersion(table, recorded, recorded.base_seq, here.base_seq, Phase::kUpdate);
  if (!difference) {
    difference = CompareDigest(layer, "gradients", Phase::kBackward, recorded.gradients,
                               here.gradients, "the forward pass was equal, the gradients are not");
  }
  if (!difference) {
    const char* cause = recorded.gradients
                            ? "the gradients were equal, the updated layer is not"
                            : "the loss was equal, the updated layer is not; a record at level "
                              "full would tell the backward pass from the update";
    difference =
        CompareDigest(layer, "weights", Phase::kUpdate, recorded.weights, here.weights, cause);
  }
  if (!difference) {
    difference = CompareDigest(
        layer, "optimizer state", Phase::kUpdate, recorded.optimizer_state, here.optimizer_state,
        "the weights after the update were equal, the optimizer state is not");
  }
  return difference;
}

/// Choices, samples, batch bytes, layers used and versions read: all that comes before the forward
/// pass.
std::optional<Difference> CompareBeforeForward(const LayerTable& table, const SubnetRow& recorded,
                                               const SubnetRow& here) {
  auto difference = CompareChoices(table, recorded.choices, here.choices);
  if (difference) difference->cause = "the sampler, its seed or its list is another";
  if (!difference) difference = CompareSamples(recorded, here);
  if (!difference) difference = CompareBatch(recorded, here);
  if (!difference && !SameLayers(recorded, here)) {
    difference = At(DifferenceClass::kSpec, "layers used");
    difference->recorded = FormatCount(std::ssize(recorded.accesses), "access", "accesses");
    difference->expected = FormatCount(std::ssize(here.accesses), "access", "accesses");
    difference->cause = "equal choices use other versioned layers";
  }
  if (!difference) difference = CompareReads(table, recorded, here);
  return difference;
}

}  // namespace

std::optional<Difference> CompareSubnetInputs(const LayerTable& table, const SubnetRow& recorded,
                                              const SubnetRow& here) {
  auto difference = CompareBeforeForward(table, recorded, here);
  for (std::size_t i = recorded.accesses.size(); !difference && i-- > 0;) {
    const AccessRow& access = recorded.accesses[i];
    difference =
        CompareVersion(table, access, access.base_seq, here.accesses[i].base_seq, Phase::kUpdate);
  }
  if (difference) difference->seq = recorded.seq;
  return difference;
}

std::optional<Difference> CompareSubnetRows(const LayerTable& table, const SubnetRow& recorded,
                                            const SubnetRow& here) {
  auto difference = CompareBeforeForward(table, recorded, here);
  if (!difference) difference = CompareActivations(table, recorded, here);
  if (!difference) difference = CompareLoss(recorded, here);
  // From the head down: the first layer whose gradients went wrong taints those below it.
  for (std::size_t i = recorded.accesses.size(); !difference && i-- > 0;) {
    difference = CompareAccess(table, recorded.accesses[i], here.accesses[i]);
  }
  if (difference) difference->seq = recorded.seq;
  return difference;
}

}  // namespace verbatim
