// The Engine of `verbatim-engine`: LibTorch's.
#pragma once

#include "cli/engine.h"

namespace verbatim {

class TorchEngine : public Engine {
 public:
  Status Train(const TrainRequest& request) override;
  Status Resume(std::unique_ptr<RecordReader> reader, const ResumeRequest& request,
                Verdict& verdict) override;
  Result<MeasuredSpace> Profile(const ProfileRequest& request) override;
  Status Reexecute(const RunInfo& run, const ReexecuteOptions& options,
                   ReexecutionSink& sink) override;
  Result<Explanation> Explain(const ExplainSide& left, const ExplainSide& right,
                              std::int64_t seq) override;
  Result<EngineDescription> Describe(const std::string& device,
                                     std::int64_t threads_per_stage) override;
};

}  // namespace verbatim
