// The Engine of `verbatim-engine`: LibTorch's.
#pragma once

#include "cli/engine.h"
#include "cli/rank_session.h"

namespace verbatim {

class TorchEngine : public Engine {
 public:
  Status Train(const TrainRequest& request) override;
  Status Resume(std::unique_ptr<RecordReader> reader, const ResumeRequest& request,
                Verdict& verdict) override;
  Status Work(const WorkRequest& request) override;
  void Dismiss(const RankPlace& place, const std::optional<Error>& why) override;
  Result<MeasuredSpace> Profile(const ProfileRequest& request) override;
  Status Reexecute(const RunInfo& run, const ReexecuteOptions& options,
                   const std::optional<RankPlace>& place, ReexecutionSink& sink) override;
  Result<Explanation> Explain(const ExplainSide& left, const ExplainSide& right,
                              std::int64_t seq) override;
  Result<EngineDescription> Describe(const std::string& device,
                                     std::int64_t threads_per_stage) override;

  /// Whether a training has left a thread behind (TrainingOptions::has_stuck_stage).
  bool has_stuck_stage() { return *session_.has_stuck_stage(); }

 private:
  RankSession session_;
};

}  // namespace verbatim
