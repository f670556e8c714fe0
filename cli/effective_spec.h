// The spec that a command line trains: the file's, with what options replace.
#pragma once

#include "base/status.h"
#include "cli/engine.h"
#include "supernet/spec.h"

namespace verbatim {

/// Reads the request's spec and applies --subnets and --record.
Result<Spec> EffectiveSpec(const TrainRequest& request);

}  // namespace verbatim
