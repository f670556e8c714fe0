#include "cli/resumption.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "base/utc_time.h"
#include "cli/head_options.h"
#include "cli/output.h"
#include "cli/stop_signals.h"
#include "cli/training_run.h"
#include "cli/version.h"
#include "recorder/recorded_checkpoints.h"
#include "recorder/recorder.h"
#include "recorder/subnet_assembler.h"
#include "replay/in_order.h"
#include "replay/plan.h"
#include "replay/reexecute.h"
#include "store/checkpoint_files.h"
#include "trainer/checkpoint_loader.h"
#include "trainer/environment.h"
#include "trainer/experiment.h"
#include "trainer/stage_devices.h"
#include "trainer/training.h"
#include "verify/comparator.h"
#include "verify/environment_comparison.h"
#include "verify/text.h"

namespace verbatim {
namespace {

/// What a resumption works on, prepared and checked against the record.
struct Resumption {
  const ResumeRequest& request;
  const RecordReader& reader;
  const RunInfo& run;
  std::int64_t recorded;                    ///< subnets 0 … recorded-1 are there; others may be
  std::vector<EnvironmentRow> environment;  ///< here
  Experiment experiment;
  TrainingOptions options;
};

Result<std::vector<at::Device>> DevicesFor(const ResumeRequest& request, const RunInfo& run) {
  const LocalRank local = LocalRankOf(request.place);
  if (!request.device) return ParseRecordedDevices(run.device, local);
  ASSIGN_OR_RETURN(auto devices, ParseDevices(*request.device, local));
  const std::string kind = devices.front().is_cpu() ? "cpu" : "cuda";
  if (run.device.starts_with(kind)) return devices;
  return UsageError(fmt::format("--device {}: the run was made on {}, and another kind of device "
                                "gives other bits",
                                *request.device, run.device),
                    "Name a device of that kind, or leave --device out.");
}

/// Facts that are other ones here than in the record, as JSON.
std::string OtherFacts(const Resumption& resumption, const std::vector<EnvironmentRow>& recorded) {
  nlohmann::json facts = nlohmann::json::object();
  for (const auto& difference :
       CompareEnvironments(recorded, resumption.environment, ProfileOf(resumption.run))) {
    facts[difference.key] = difference.here;
  }
  return facts.dump();
}

Result<Resumption> Prepare(const RecordReader& reader, const ResumeRequest& request,
                           const Verdict& verdict) {
  ConfigureDeterminism();
  ASSIGN_OR_RETURN(const Spec spec, ParseSpec(verdict.run.spec_json, "the record's spec"));
  ASSIGN_OR_RETURN(const auto recorded, reader.Environment());
  ASSIGN_OR_RETURN(const std::int64_t threads, RecordedThreads(recorded));
  at::set_num_threads(static_cast<int>(threads));
  ASSIGN_OR_RETURN(const auto devices, DevicesFor(request, verdict.run));
  auto environment = DescribeEnvironment(devices.front(), threads);
  // Before the data is loaded, so that another environment is refused in a second.
  if (auto refusal =
          EnvironmentRefusal(CompareEnvironments(recorded, environment, ProfileOf(verdict.run)))) {
    return tl::unexpected(*std::move(refusal));
  }
  ASSIGN_OR_RETURN(Experiment experiment,
                   PrepareExperiment(spec, verdict.run.spec_folder, request.data_folder, devices,
                                     HomeFor(request.layout.device_memory)));
  TrainingOptions options;
  RETURN_IF_ERROR(SetLayout(request.layout, experiment, options));
  options.threads_per_stage = threads;
  options.record_level = spec.record_level;
  options.stop_on_nan = request.stop_on_nan;
  options.begin_ns = SecondsSince(verdict.run.started_utc) * 1'000'000'000;
  RETURN_IF_ERROR(CheckTraining(experiment, options));
  options.is_memory_checked = true;
  return Resumption{request,
                    reader,
                    verdict.run,
                    verdict.counts.subnets_audited,
                    std::move(environment),
                    std::move(experiment),
                    std::move(options)};
}

/// Fills the experiment's layers. One that is sound as files may still not be what was recorded.
Status Load(const CheckpointRow& checkpoint, const Verdict& verdict, Resumption& resumption) {
  const auto unsound = verdict.unsound_checkpoints.find(checkpoint.cut);
  if (unsound != verdict.unsound_checkpoints.end()) return BadInput(unsound->second);
  return LoadCheckpoint(CheckpointFolder(resumption.request.record), checkpoint,
                        resumption.experiment);
}

/// Loads the newest checkpoint that can be used and sets where training begins. One that cannot is
/// named on stderr; without any, training begins with the initial weights.
Status ChooseStart(const Verdict& verdict, Resumption& resumption) {
  ASSIGN_OR_RETURN(std::vector<CheckpointRow> checkpoints, resumption.reader.Checkpoints());
  for (auto row = checkpoints.rbegin(); row != checkpoints.rend(); ++row) {
    if (row->cut > resumption.recorded) continue;  // what it rests on is not recorded
    const Status loaded = Load(*row, verdict, resumption);
    if (loaded) {
      resumption.options.first = row->cut;
      resumption.options.checkpoints.previous = *row;
      return {};
    }
    if (loaded.error().kind != ErrorKind::kBadInput) return loaded;
    fmt::print(stderr, "verbatim: the checkpoint at subnet {} cannot be used: {}\n", row->cut,
               ForTerminal(loaded.error().message));
  }
  return {};
}

/// Once it is known where training begins, and before anything is written.
Status JoinRanks(Resumption& resumption, RankSession& session) {
  const ResumeRequest& request = resumption.request;
  TrainingOptions& options = resumption.options;
  if (!request.place) return {};
  options.sends_layers = options.first > 0;
  ASSIGN_OR_RETURN(RankJob job, DescribeJob(resumption.experiment, options, request.layout.costs));
  job.spec_folder = resumption.run.spec_folder;
  job.has_checkpoints = request.checkpoints.keep > 0;
  job.checkpoint_every = request.checkpoints.every;
  RETURN_IF_ERROR(session.Lead(*request.place, job));
  options.network = session.network();
  options.has_stuck_stage = session.has_stuck_stage();
  return {};
}

/// `subnets`: how many the record was found to have.
Result<std::unique_ptr<RecordWriter>> OpenWriter(const Resumption& resumption,
                                                 std::int64_t subnets) {
  ASSIGN_OR_RETURN(const auto recorded, resumption.reader.Environment());
  const TrainingOptions& options = resumption.options;
  ResumptionRow row;
  row.tool_version = ToolVersion();
  row.command_line = resumption.request.command_line;
  row.policy = options.policy;
  const auto& place = resumption.request.place;
  row.device = place ? place->device : NameOf(resumption.experiment.devices);
  row.stages = options.stages;
  row.in_flight = options.in_flight;
  row.partition = options.partition;
  row.cut = options.first;
  row.started_utc = UtcNow();
  row.facts_json = OtherFacts(resumption, recorded);
  return RecordWriter::Reopen(resumption.request.record, row, subnets);
}

/// Null where none are to be taken.
Result<std::unique_ptr<RecordedCheckpoints>> StartCheckpoints(Resumption& resumption,
                                                              Recorder& recorder) {
  const ResumeRequest& request = resumption.request;
  if (request.checkpoints.keep == 0) return nullptr;
  ASSIGN_OR_RETURN(auto rows, resumption.reader.Checkpoints());
  ASSIGN_OR_RETURN(auto checkpoints,
                   RecordedCheckpoints::Open(request.record, recorder, request.checkpoints.keep,
                                             std::move(rows)));
  resumption.options.checkpoints.sink = checkpoints.get();
  resumption.options.checkpoints.every = request.checkpoints.every;
  return checkpoints;
}

/// Takes finished subnets in ascending seq: compares those that are recorded and records the rest.
/// A subnet is recorded only once all before it agreed, so that nothing that follows from a
/// difference gets into the record.
class Overlap {
 public:
  /// `recorded`: how many of the subnets to come are in the record.
  Overlap(const RecordReader& reader, std::int64_t recorded, Comparator& comparator,
          Recorder& recorder)
      : reader_(&reader), recorded_(recorded), comparator_(comparator), recorder_(recorder) {}

  /// Whether to go on.
  bool Take(SubnetRow&& subnet) {
    status_ = TakeOne(std::move(subnet));
    return status_.has_value();
  }
  const Status& status() const { return status_; }
  std::int64_t compared() const { return comparator_.subnets_equal(); }

 private:
  Status TakeOne(SubnetRow&& subnet) {
    if (compared() < recorded_) {
      ASSIGN_OR_RETURN(const auto recorded, reader_->Subnet(subnet.seq, ReadOptions{false}));
      if (recorded) return Compare(subnet);
    }
    return recorder_.AddSubnet(std::move(subnet));
  }

  Status Compare(const SubnetRow& subnet) {
    const bool is_equal = comparator_.OnSubnet(subnet) && !comparator_.difference();
    if (is_equal) return {};
    RETURN_IF_ERROR(comparator_.status());
    return Failed(
        fmt::format("subnet {}, executed again, differs from what was recorded", subnet.seq));
  }

  const RecordReader* reader_;
  const std::int64_t recorded_;
  Comparator& comparator_;
  Recorder& recorder_;
  Status status_;
};

std::string Describe(const Resumption& resumption, const TrainingOutcome& outcome,
                     const TrainingSummary& summary, std::int64_t compared,
                     const RecordedCheckpoints* checkpoints) {
  const std::int64_t first = resumption.options.first;
  std::string text = first == 0
                         ? std::string("began with the initial weights: no usable checkpoint\n")
                         : fmt::format("went on from the checkpoint at subnet {}\n", first);
  if (compared > 0) {
    text += fmt::format("compared {} with what was recorded: equal\n",
                        FormatCount(compared, "subnet", "subnets"));
  }
  return text + DescribeTraining(resumption.options, outcome, summary) +
         DescribeRecord(resumption.request.record, outcome.status, checkpoints);
}

/// Trains to the end, through `overlap`.
TrainingOutcome TrainOn(Resumption& resumption, Overlap& overlap, TrainingSummary& summary) {
  std::vector<std::int64_t> sequence(static_cast<std::size_t>(
      resumption.experiment.spec.training.subnets - resumption.options.first));
  std::iota(sequence.begin(), sequence.end(), resumption.options.first);
  InOrder in_order(sequence, [&](SubnetRow&& row) { return overlap.Take(std::move(row)); });
  // Subnets are reported finished one at a time.
  SubnetAssembler assembler([&](SubnetRow&& row) -> Status {
    return in_order.Add(std::move(row)) ? Status{} : overlap.status();
  });
  resumption.options.observer = &assembler;
  const StopSignals signals;
  return TrainAndEvaluate(resumption.experiment, resumption.options, signals,
                          resumption.request.quiet, summary);
}

}  // namespace

Status ResumeAndRecord(std::unique_ptr<RecordReader> reader, const ResumeRequest& request,
                       RankSession& session, Verdict& verdict) {
  ASSIGN_OR_RETURN(Resumption resumption, Prepare(*reader, request, verdict));
  ASSIGN_OR_RETURN(Comparator comparator, Comparator::Create(*reader, request.record.string(), {}));
  comparator.OnEnvironment(resumption.environment);
  comparator.OnDataset(resumption.experiment.dataset->digest());
  comparator.OnLayers(DescribeLayers(resumption.experiment));
  if (comparator.difference()) {
    comparator.AddTo(verdict);
    return {};
  }
  RETURN_IF_ERROR(ChooseStart(verdict, resumption));
  RETURN_IF_ERROR(JoinRanks(resumption, session));
  ASSIGN_OR_RETURN(auto writer, OpenWriter(resumption, verdict.counts.subnets));
  RecorderOptions recording;
  ASSIGN_OR_RETURN(recording.on_head, HeadKeeper(request.heads));
  recording.head_every = request.heads.every;
  const auto recorder = Recorder::Start(std::move(writer), recording);
  Overlap overlap(*reader, verdict.counts.subnets - resumption.options.first, comparator,
                  *recorder);
  ASSIGN_OR_RETURN(const auto checkpoints, StartCheckpoints(resumption, *recorder));
  TrainingSummary summary;
  const TrainingOutcome outcome = TrainOn(resumption, overlap, summary);
  reader.reset();  // a reader would keep the record in WAL mode
  RETURN_IF_ERROR(recorder->Close(outcome.status, outcome.detail, summary.evaluations));
  if (comparator.difference()) {
    comparator.AddTo(verdict);
    return {};
  }
  if (outcome.status == RunStatus::kFailed) {
    return Failed(fmt::format("the run failed again after {}: {}",
                              FormatCount(outcome.subnets, "subnet", "subnets"), outcome.detail),
                  fmt::format("what finished is in {}", request.record.string()));
  }
  if (request.quiet) return {};
  return WriteToStdout(
      Describe(resumption, outcome, summary, overlap.compared(), checkpoints.get()));
}

}  // namespace verbatim
