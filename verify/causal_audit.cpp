#include "verify/causal_audit.h"

#include <fmt/format.h>

#include "base/check.h"
#include "verify/text.h"

namespace verbatim {

CausalAudit::CausalAudit(const std::vector<std::int64_t>& delays) {
  for (const std::int64_t delay : delays) {
    layers_.push_back({.delay = delay});
    has_delays_ |= delay > 0;
  }
}

void CausalAudit::Check(CausalViolation::Kind kind, std::int64_t seq, const AccessRow& access,
                        std::int64_t observed, std::int64_t expected) {
  if (observed == expected) [[likely]]
    return;
  ++violations_;
  if (first_) return;
  first_ = {kind, seq, access.layer, access.stage, observed, expected, layers_[access.layer].delay};
}

std::int64_t CausalAudit::ReadableBy(std::int64_t seq, Layer& layer) {
  if (layer.delay == 0) return layer.newest;
  while (!layer.too_young.empty() && layer.too_young.front() < seq - layer.delay) {
    layer.readable = layer.too_young.front();
    layer.too_young.pop_front();
  }
  return layer.readable;
}

void CausalAudit::Visit(const SubnetRow& subnet) {
  VERBATIM_CHECK(subnet.seq == subnets_, "subnet {} after {} subnets", subnet.seq, subnets_);
  const std::int64_t violations_before = violations_;
  for (const AccessRow& access : subnet.accesses) {
    VERBATIM_CHECK(static_cast<std::size_t>(access.layer) < layers_.size(), "layer {}",
                   access.layer);
    Layer& layer = layers_[access.layer];
    Check(CausalViolation::Kind::kRead, subnet.seq, access, access.read_seq,
          ReadableBy(subnet.seq, layer));
    Check(CausalViolation::Kind::kBase, subnet.seq, access, access.base_seq, layer.newest);
    layer.newest = subnet.seq;
    if (layer.delay > 0) layer.too_young.push_back(subnet.seq);
  }
  ++subnets_;
  accesses_ += static_cast<std::int64_t>(subnet.accesses.size());
  if (violations_ > violations_before) ++subnets_affected_;
}

std::string Describe(const CausalViolation& violation, std::string_view layer_name) {
  const bool is_read = violation.kind == CausalViolation::Kind::kRead;
  const std::string which = violation.delay == 0
                                ? "causal predecessor"
                                : fmt::format("{} predecessor", is_read ? "read" : "base");
  const std::string has = violation.expected < 0
                              ? fmt::format("it has no {}", which)
                              : fmt::format("its {} is subnet {}", which, violation.expected);
  const std::string with =
      violation.delay > 0 && is_read ? fmt::format("with delay {} ", violation.delay) : "";
  return fmt::format("subnet {} {} {} at {} on stage {}; {}{}", violation.seq,
                     is_read ? "read" : "updated", layer_name, FormatVersion(violation.observed),
                     violation.stage, with, has);
}

}  // namespace verbatim
