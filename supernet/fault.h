// Faults that can be injected into a run on purpose, to see that verification finds them
// (docs/fault-injection.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace verbatim {

/// The values are part of the format, as keys of draws: never renumber.
enum class FaultKind : std::uint8_t {
  kDroppedDependency = 0,  ///< reads the version before its causal predecessor's, and says so
  kStaleRead = 1,          ///< reads the weights before its causal predecessor's, and does not
  kBitFlip = 2,            ///< one bit of one weight flips just after the update
  kLostUpdate = 3,         ///< an update of a layer has no effect
  kSwappedSamples = 4,     ///< two samples of a batch change places
  kDropoutKey = 5,         ///< a layer's dropout is drawn by another key
  kGradientOrder = 6,      ///< micro-batches' gradients are added in another order
  kStaleOptimizer = 7,     ///< an update uses the optimizer state from before the previous one
  kThreadCount = 8,        ///< from a subnet on, stages compute with one thread more than recorded
  kRewrittenRow = 9,       ///< a digest in the closed record is edited
  kDeletedRow = 10,        ///< a subnet's rows are deleted from the closed record
  kTruncatedFile = 11,     ///< the closed record is cut in the middle
};

/// "stale-read", …
std::string_view ToString(FaultKind kind);
/// All names, in the order of FaultKind.
std::vector<std::string_view> FaultNames();
/// Whether it is made in the closed record, not in the training.
bool IsRecordFault(FaultKind kind);

struct Fault {
  FaultKind kind = FaultKind::kStaleRead;
  std::optional<std::int64_t> seq;  ///< nothing: the seed draws one where the fault can show
  bool operator==(const Fault&) const = default;
};

/// "CLASS" or "CLASS@SUBNET". kUsage, with the name that was probably meant, for anything else;
/// also for a subnet where the class has none (truncated-file).
Result<Fault> ParseFault(std::string_view text);
/// The environment fact that names the injected fault, and after a space its place.
inline constexpr const char* kInjectedKey = "info.injected";
/// What ParseFault reads.
std::string ToString(const Fault& fault);

}  // namespace verbatim
