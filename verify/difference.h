// A difference between two executions as a plain value: where it is, of which class, what is known
// of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "store/record.h"

namespace verbatim {

/// What a difference is about. Kept apart because each has another cause and another remedy.
enum class DifferenceClass {
  kEnvironment,     ///< numbers differ, and so do the numeric environments
  kSpec,            ///< layers or choices are not what the spec says
  kSampleOrder,     ///< other samples, or in another order
  kBatchBytes,      ///< the same samples with other bytes; or another data set
  kSettings,        ///< other hyper-parameters of a step: learning rate, momentum, modes
  kRandomState,     ///< generators stood elsewhere before a step
  kInitialWeights,  ///< before the first subnet
  kSchedule,        ///< an access saw a version other than its causal predecessor's
  kComputation,     ///< all inputs equal, the output not
  kForged,          ///< the record is not what a head or a rank's part, kept elsewhere, says
};
/// "environment", "spec", "sample order", "batch bytes", "hyper-parameters", "random state",
/// "initial weights", "schedule", "computation", "damaged or forged".
const char* ToString(DifferenceClass kind);

/// The first place, in causal order, where a record and its reference part.
struct Difference {
  DifferenceClass kind = DifferenceClass::kComputation;
  RunKind run = RunKind::kSupernet;
  /// The subnet, or a step by its trainer's number; nothing: before the first or after the last.
  std::optional<std::int64_t> seq;
  bool after_last = false;  ///< without a seq: after the last subnet
  std::optional<std::int32_t> layer;
  std::string layer_name;  ///< empty without a layer
  std::optional<Phase> phase;
  std::string what;          ///< "loss", "weights", "version read", …
  std::string recorded;      ///< value in the record
  std::string expected;      ///< value of the reference
  std::string cause;         ///< what is known of it
  std::string next_command;  ///< to type next
};

/// The `verbatim show` that looks at the difference's place in the record at `path`.
std::string ShowCommand(const std::string& path, const Difference& difference);

/// Whether `left` comes before `right` in the stream.
bool IsEarlier(const Difference& left, const Difference& right);

}  // namespace verbatim
