#include "verify/causal_audit.h"

#include <fmt/format.h>

#include "base/check.h"
#include "verify/text.h"

namespace verbatim {

void CausalAudit::Check(CausalViolation::Kind kind, std::int64_t seq, const AccessRow& access,
                        std::int64_t observed) {
  const std::int64_t expected = last_user_[access.layer];
  if (observed == expected) [[likely]]
    return;
  ++violations_;
  if (!first_) first_ = {kind, seq, access.layer, access.stage, observed, expected};
}

void CausalAudit::Visit(const SubnetRow& subnet) {
  VERBATIM_CHECK(subnet.seq == subnets_, "subnet {} after {} subnets", subnet.seq, subnets_);
  const std::int64_t violations_before = violations_;
  for (const AccessRow& access : subnet.accesses) {
    VERBATIM_CHECK(static_cast<std::size_t>(access.layer) < last_user_.size(), "layer {}",
                   access.layer);
    Check(CausalViolation::Kind::kRead, subnet.seq, access, access.read_seq);
    Check(CausalViolation::Kind::kBase, subnet.seq, access, access.base_seq);
    last_user_[access.layer] = subnet.seq;
  }
  ++subnets_;
  accesses_ += static_cast<std::int64_t>(subnet.accesses.size());
  if (violations_ > violations_before) ++subnets_affected_;
}

std::string Describe(const CausalViolation& violation, std::string_view layer_name) {
  const std::string predecessor =
      violation.expected < 0
          ? "it has no causal predecessor"
          : fmt::format("its causal predecessor is subnet {}", violation.expected);
  const std::string_view verb = violation.kind == CausalViolation::Kind::kRead ? "read" : "updated";
  return fmt::format("subnet {} {} {} at {} on stage {}; {}", violation.seq, verb, layer_name,
                     FormatVersion(violation.observed), violation.stage, predecessor);
}

}  // namespace verbatim
