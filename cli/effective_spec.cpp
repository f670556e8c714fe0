#include "cli/effective_spec.h"

namespace verbatim {

Result<Spec> EffectiveSpec(const TrainRequest& request) {
  ASSIGN_OR_RETURN(Spec spec, ReadSpec(request.spec));
  if (request.subnets) spec.training.subnets = *request.subnets;
  if (!request.record_level.empty() && request.record_level != "off") {
    ASSIGN_OR_RETURN(spec.record_level, RecordLevelFromString(request.record_level));
  }
  return spec;
}

}  // namespace verbatim
