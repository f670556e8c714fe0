// Where an injected fault goes: decided before training, from the spec, the stream and the seed
// alone, so that it is the same whatever the layout and the timing. No LibTorch here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/keyed_random.h"
#include "base/status.h"
#include "store/record.h"
#include "supernet/fault.h"
#include "supernet/search_space.h"
#include "supernet/spec.h"
#include "supernet/stream.h"

namespace verbatim {

/// The place where a fault shows first.
struct InjectedPlace {
  std::optional<std::int64_t> seq;    ///< nothing: the file
  std::optional<std::int32_t> layer;  ///< nothing: the subnet as a whole
  std::string layer_name;             ///< empty without a layer
  std::optional<Phase> phase;         ///< nothing: before any, or unknown
};
/// "subnet 12, layer block3.1, forward".
std::string ToString(const InjectedPlace& place);

struct FaultPlan {
  FaultKind kind = FaultKind::kStaleRead;
  InjectedPlace place;
  std::int64_t predecessor = -1;  ///< causal predecessor of the place's access; -1: none
};
/// "stale-read@12 block3.1 forward": the value of the environment fact `info.injected`.
std::string ToString(const FaultPlan& plan);

/// What bears on where a fault can show. References outlive the call.
struct FaultSetting {
  const Spec& spec;  ///< with the record level of the run
  const SearchSpace& space;
  const Sampler& sampler;
  std::string policy = "causal";
  bool on_cpu = true;
};

/// Chooses subnet, where `fault` names none, and layer by draws with the spec's seed among those
/// where the fault can show; the subnet from the middle third of the run if one qualifies there.
/// kUsage where it cannot show in this run, or not at that subnet: why, and where it could.
Result<FaultPlan> PlanFault(const Fault& fault, const FaultSetting& setting);

/// What else a fault draws at its place, by a key of its own.
KeyedRandom FaultDraws(const FaultPlan& plan, std::uint64_t seed);

}  // namespace verbatim
