// What the ranks of a simulated run share: the clock, the network, what they tell each other, and
// what is wanted of them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "schedule/scheduler.h"
#include "tests/schedule/ranks/computed_layers.h"
#include "tests/schedule/ranks/rank_case.h"
#include "tests/schedule/ranks/simulated_stages.h"
#include "tests/schedule/ranks/virtual_network.h"

namespace verbatim::ranks_test {

struct Packet {
  enum class Kind { kAdmitted, kDelivery, kFinished, kStop, kEnd, kLayer, kDone, kAbort };
  Kind kind = Kind::kAdmitted;
  std::int64_t seq = -1;
  Delivery delivery;
  Cargo cargo;       ///< kDelivery; kLayer: `version`; kFinished: the loss as `input`, if it has it
  int layer = -1;    ///< kLayer
  std::string text;  ///< kAbort
};

enum class Ending { kNone, kComplete, kFailed, kCrashed };

/// What all ranks of a run share: the world around them.
struct RankWorld {
  const RankCase& drawn;
  const Policy& policy;
  const SequentialReference& reference;
  EventQueue& events;
  std::function<void(int from, int to, Packet packet)> send;
  /// A rank has computed or seen something that the sequential reference does not.
  std::function<void(std::string what)> differs;
};

}  // namespace verbatim::ranks_test
