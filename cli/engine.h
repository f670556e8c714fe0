// What the command line asks of the part that computes on tensors.
//
// Two executables share cli/: `verbatim`, which links no LibTorch and starts in milliseconds, and
// `verbatim-engine`, which links it. `verbatim` has no Engine: a subcommand that needs one executes
// verbatim-engine with the same arguments (cli/forward.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/checkpoint_options.h"
#include "cli/head_options.h"
#include "cli/layout_options.h"
#include "cli/rank_options.h"
#include "cli/rank_part.h"
#include "replay/explain.h"
#include "replay/reexecute.h"
#include "store/reader.h"
#include "store/record.h"
#include "supernet/costs.h"
#include "supernet/search_space.h"
#include "supernet/spec.h"
#include "verify/verdict.h"

namespace verbatim {

/// Options of `verbatim train`, as typed.
struct TrainRequest {
  std::filesystem::path spec;
  std::filesystem::path output;  ///< empty with record_level "off"
  bool force = false;            ///< overwrite an existing output
  LayoutOptions layout;
  std::int64_t threads_per_stage = 1;
  std::string device = "cpu";
  std::string policy = "causal";
  HeadOptions heads;
  std::string record_level;             ///< "off", a level, or empty: the spec's
  std::optional<std::int64_t> subnets;  ///< overrides training.subnets
  std::optional<std::filesystem::path> data_folder;
  bool stop_on_nan = true;
  CheckpointOptions checkpoints;
  std::optional<std::string> inject;  ///< "CLASS[@SUBNET]"
  bool quiet = false;
  std::string command_line;
  RankOptions ranks;
  bool keep_parts = false;
  std::optional<RankPlace> place;  ///< of rank 0; absent: one process
};

/// Options of `verbatim resume`, as typed.
struct ResumeRequest {
  std::filesystem::path record;
  LayoutOptions layout;
  HeadOptions heads;
  CheckpointOptions checkpoints;
  std::optional<std::string> device;  ///< absent: of the recorded kind
  std::optional<std::filesystem::path> data_folder;
  bool stop_on_nan = true;
  bool quiet = false;
  std::string command_line;
  RankOptions ranks;
  bool keep_parts = false;
  std::optional<RankPlace> place;  ///< as TrainRequest's
};

/// What a rank other than 0 does for rank 0, whatever the command.
struct WorkRequest {
  RankPlace place;
  std::optional<std::filesystem::path> spec_folder;  ///< where it has the spec's relative paths
  std::optional<std::filesystem::path> data_folder;  ///< --data
  std::optional<RankPartRequest> part;               ///< absent: it keeps none
};

/// Options of `verbatim profile`, as typed.
struct ProfileRequest {
  std::filesystem::path spec;
  std::filesystem::path output;  ///< of the cost file; empty: none is written
  std::string device = "cpu";
  std::int64_t threads_per_stage = 1;
  std::int64_t repeat = 10;
  std::optional<std::filesystem::path> data_folder;
  bool quiet = false;
};

/// What a measurement gave: the costs, and the search space that they belong to.
struct MeasuredSpace {
  Spec spec;
  SearchSpace space;
  CostTable costs;
};

/// What an engine computes with.
struct EngineDescription {
  std::vector<EnvironmentRow> environment;  ///< as a record has it
  std::vector<std::string> devices;         ///< "cpu", "cuda:0 (NVIDIA H200)"
  std::string cuda;                         ///< whether and how it can use GPUs, or why not
};

class Engine {
 public:
  virtual ~Engine() = default;
  /// Trains, records, prints the summary; returns when the record is closed. Ctrl-C (SIGINT,
  /// SIGTERM) stops admission, finishes the subnets in flight and closes as "interrupted".
  virtual Status Train(const TrainRequest& request) = 0;
  /// Goes on with a run, from a record that `verdict` found sound and that is not complete; prints
  /// the summary. A difference from what was recorded goes into the verdict, and nothing that
  /// follows from it into the record. Errors as Train's; Ctrl-C likewise.
  virtual Status Resume(std::unique_ptr<RecordReader> reader, const ResumeRequest& request,
                        Verdict& verdict) = 0;
  /// Computes this rank's stages as rank 0 says, whatever the command; writes no file and nothing
  /// to stdout. Errors as Train's, and Join's. Ctrl-C stops the whole run as it does on rank 0.
  virtual Status Work(const WorkRequest& request) = 0;
  /// Where this process has not joined the others' run: tells them that there is nothing to do, or
  /// `why` it cannot take part, so that they need not wait.
  virtual void Dismiss(const RankPlace& place, const std::optional<Error>& why) = 0;
  /// Measures what every layer costs; progress on stderr. Ctrl-C stops it with an error (kFailed).
  virtual Result<MeasuredSpace> Profile(const ProfileRequest& request) = 0;
  /// On several ranks where there is a place, which is rank 0's. Ctrl-C stops it with an error
  /// (kFailed).
  virtual Status Reexecute(const RunInfo& run, const ReexecuteOptions& options,
                           const std::optional<RankPlace>& place, ReexecutionSink& sink) = 0;
  /// Both sides' numeric profiles must be this process's.
  virtual Result<Explanation> Explain(const ExplainSide& left, const ExplainSide& right,
                                      std::int64_t seq) = 0;
  /// The environment of a run on `device` ("cpu", "cuda") with that many threads per stage. kFailed
  /// or kUsage where there is no such device.
  virtual Result<EngineDescription> Describe(const std::string& device,
                                             std::int64_t threads_per_stage) = 0;
};

}  // namespace verbatim
