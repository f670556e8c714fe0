// The Engine of `verbatim-engine`: LibTorch's.
#pragma once

#include "cli/engine.h"

namespace verbatim {

class TorchEngine : public Engine {
 public:
  Status Train(const TrainRequest& request) override;
  Status Reexecute(const RunInfo& run, const ReexecuteOptions& options,
                   ReexecutionSink& sink) override;
};

}  // namespace verbatim
