#include "supernet/fault.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "supernet/nearest_name.h"
#include "supernet/spec_names.h"

namespace verbatim {
namespace {

constexpr NameTable<FaultKind, 12> kFaultNames{
    {{"dropped-dependency", FaultKind::kDroppedDependency},
     {"stale-read", FaultKind::kStaleRead},
     {"bit-flip", FaultKind::kBitFlip},
     {"lost-update", FaultKind::kLostUpdate},
     {"swapped-samples", FaultKind::kSwappedSamples},
     {"dropout-key", FaultKind::kDropoutKey},
     {"gradient-order", FaultKind::kGradientOrder},
     {"stale-optimizer", FaultKind::kStaleOptimizer},
     {"thread-count", FaultKind::kThreadCount},
     {"rewritten-row", FaultKind::kRewrittenRow},
     {"deleted-row", FaultKind::kDeletedRow},
     {"truncated-file", FaultKind::kTruncatedFile}}};

Result<std::int64_t> ParseSeq(std::string_view fault, std::string_view text) {
  std::int64_t seq = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seq);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  if (is_whole && seq >= 0) return seq;
  return UsageError(fmt::format("fault {}: '{}' is no subnet", fault, text),
                    "write CLASS@SUBNET, as in stale-read@12");
}

}  // namespace

std::string_view ToString(FaultKind kind) {
  return NameOf(kFaultNames, kind);
}

std::vector<std::string_view> FaultNames() {
  return NamesOf(kFaultNames);
}

bool IsRecordFault(FaultKind kind) {
  return kind >= FaultKind::kRewrittenRow;
}

Result<Fault> ParseFault(std::string_view text) {
  const std::size_t at = text.find('@');
  const std::string_view name = text.substr(0, at);
  const auto* const entry = std::find_if(kFaultNames.begin(), kFaultNames.end(),
                                         [&](const auto& known) { return known.first == name; });
  if (entry == kFaultNames.end()) {
    return UsageError(fmt::format("there is no fault '{}'", name), SuggestName(name, FaultNames()));
  }
  Fault fault{entry->second, std::nullopt};
  if (at == std::string_view::npos) return fault;
  if (fault.kind == FaultKind::kTruncatedFile) {
    return UsageError(fmt::format("fault {}: a file is cut at no subnet", text),
                      "leave out what follows the @");
  }
  ASSIGN_OR_RETURN(fault.seq, ParseSeq(text, text.substr(at + 1)));
  return fault;
}

std::string ToString(const Fault& fault) {
  return fault.seq ? fmt::format("{}@{}", ToString(fault.kind), *fault.seq)
                   : std::string(ToString(fault.kind));
}

}  // namespace verbatim
