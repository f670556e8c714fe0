#include "verify/part_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

#include "verify/subnet_difference.h"
#include "verify/text.h"

namespace verbatim {
namespace {

Difference At(const SubnetRow& row, std::string what, std::string recorded, std::string expected) {
  Difference difference;
  difference.seq = row.seq;
  difference.what = std::move(what);
  difference.recorded = std::move(recorded);
  difference.expected = std::move(expected);
  return difference;
}

Difference AtLayer(const LayerTable& table, std::int32_t layer, Difference difference) {
  difference.layer = layer;
  difference.layer_name = table.Name(layer);
  return difference;
}

AccessRow* FindAccess(SubnetRow& row, std::int32_t layer) {
  const auto found = std::ranges::find(row.accesses, layer, &AccessRow::layer);
  return found == row.accesses.end() ? nullptr : &*found;
}

const AccessRow& AccessOf(const SubnetRow& row, std::int32_t layer) {
  return *std::ranges::find(row.accesses, layer, &AccessRow::layer);
}

ActivationRow* FindActivation(SubnetRow& row, const ActivationRow& like) {
  const auto found = std::ranges::find_if(row.activations, [&](const ActivationRow& other) {
    return other.microbatch == like.microbatch && other.position == like.position;
  });
  return found == row.activations.end() ? nullptr : &*found;
}

/// Makes the row what it would be, had it been recorded of this part. A difference where the row
/// has no place for something.
std::optional<Difference> Overlay(const LayerTable& table, const Part& part, SubnetRow& row) {
  for (const AccessRow& access : part.report.accesses) {
    AccessRow* const place = FindAccess(row, access.layer);
    if (place == nullptr) {
      return AtLayer(table, access.layer, At(row, "access", "none", "an access"));
    }
    *place = access;
  }
  for (const ActivationRow& activation : part.report.activations) {
    ActivationRow* const place = FindActivation(row, activation);
    if (place == nullptr) {
      return At(row,
                fmt::format("activation of micro-batch {}, position {}", activation.microbatch,
                            activation.position),
                "none", ToShortHex(activation.digest));
    }
    *place = activation;
  }
  if (part.report.loss) row.loss_bits = std::bit_cast<std::uint32_t>(*part.report.loss);
  return std::nullopt;
}

/// CompareSubnetRows compares only what both hold: a digest that the part alone has, or the row.
std::optional<Difference> ComparePresence(const LayerTable& table, const SubnetRow& row,
                                          const Part& part) {
  constexpr std::pair<const char*, std::optional<Digest> AccessRow::*> kDigests[] = {
      {"gradients", &AccessRow::gradients},
      {"weights", &AccessRow::weights},
      {"optimizer state", &AccessRow::optimizer_state}};
  const auto text = [](const std::optional<Digest>& digest) {
    return digest ? ToShortHex(*digest) : "none";
  };
  for (const AccessRow& access : part.report.accesses) {
    const AccessRow& recorded = AccessOf(row, access.layer);
    for (const auto& [what, digest] : kDigests) {
      if ((recorded.*digest).has_value() == (access.*digest).has_value()) continue;
      return AtLayer(table, access.layer,
                     At(row, what, text(recorded.*digest), text(access.*digest)));
    }
  }
  return std::nullopt;
}

std::string TaskText(const ActivityRow& task) {
  return fmt::format("stage {}, {} of micro-batch {}, {} to {} ns", task.stage,
                     ToString(task.phase), task.microbatch, task.begin_ns, task.end_ns);
}

std::optional<Difference> CompareLayout(const LayerTable& table, const SubnetRow& row,
                                        const Part& part) {
  for (const AccessRow& access : part.report.accesses) {
    const std::int32_t stage = AccessOf(row, access.layer).stage;
    if (stage == access.stage) continue;
    return AtLayer(table, access.layer,
                   At(row, "stage", std::to_string(stage), std::to_string(access.stage)));
  }
  std::set<std::int32_t> stages;
  for (const ActivityRow& task : part.report.activity) stages.insert(task.stage);
  std::vector<ActivityRow> recorded;
  std::ranges::copy_if(row.activities, std::back_inserter(recorded),
                       [&](const ActivityRow& task) { return stages.contains(task.stage); });
  const auto [left, right] = std::ranges::mismatch(recorded, part.report.activity);
  if (left == recorded.end() && right == part.report.activity.end()) return std::nullopt;
  return At(row, "task", left == recorded.end() ? "none" : TaskText(*left),
            right == part.report.activity.end() ? "none" : TaskText(*right));
}

}  // namespace

std::optional<Difference> ComparePart(const LayerTable& table, const SubnetRow& row,
                                      const Part& part, bool same_execution) {
  SubnetRow kept = row;
  auto difference = Overlay(table, part, kept);
  if (!difference) difference = CompareSubnetRows(table, row, kept);
  if (!difference) difference = ComparePresence(table, row, part);
  if (!difference && same_execution) difference = CompareLayout(table, row, part);
  return difference;
}

}  // namespace verbatim
