#include "trainer/pipeline.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <cmath>
#include <exception>
#include <numeric>
#include <system_error>

#include "base/check.h"
#include "base/exception_text.h"
#include "trainer/out_of_memory.h"

namespace verbatim {
namespace {

/// How many subnets ahead of admission the mover is told of, at least: enough to see the next use
/// of most layers that a stage could keep.
constexpr std::int64_t kForeseen = 64;

}  // namespace

Pipeline::Pipeline(Experiment& experiment, const TrainingOptions& options,
                   const Partition& partition, const RecomputePlan& recompute, const Policy& policy,
                   const Placement& placement)
    : experiment_(experiment),
      options_(options),
      partition_(partition),
      placement_(placement),
      rank_(options.network ? options.network->rank() : 0),
      transport_(partition.stages()),
      devices_(experiment.devices, placement.Begin(rank_), placement.End(rank_)),
      open_stream_(options.open_stream.value_or(&OpenDeviceStream)),
      context_{experiment.spec,
               experiment.space,
               partition.stages(),
               *experiment.dataset,
               experiment.layers,
               delayed_layers_,
               transport_,
               devices_,
               open_stream_,
               results_,
               options.record_level,
               options.observer,
               [this] { return Nanoseconds(); },
               options.probe},
      payloads_(MakePayloads()),
      scheduler_(experiment.space, partition, policy,
                 SchedulerOptions{static_cast<std::int32_t>(experiment.spec.training.microbatches),
                                  options.in_flight, options.device_memory.has_value()},
                 placement, rank_),
      wake_(static_cast<std::size_t>(partition.stages())),
      executed_(static_cast<std::size_t>(partition.stages())),
      invitations_(static_cast<std::size_t>(placement.ranks())),
      questions_(static_cast<std::size_t>(placement.ranks())),
      done_(static_cast<std::size_t>(placement.ranks())),
      versions_moved_(static_cast<std::size_t>(placement.ranks())),
      bytes_moved_(static_cast<std::size_t>(placement.ranks())),
      results_(!experiment.device.is_cpu() || options.open_stream, [this](const std::string& why) {
        const std::lock_guard lock(mutex_);
        Abort(why);
      }) {
  context_.recompute = recompute;
  if (options.network) link_.emplace(*options.network, context_, payloads_.get());
  if (!IsFirstRank() && options.is_observed) context_.observer = &rank_observer_;
  if (options.device_memory) {
    mover_.emplace(
        experiment.space, experiment.layers,
        LayerMoverOptions{partition.stages(),
                          {placement.Begin(rank_), placement.End(rank_)},
                          devices_,
                          open_stream_,
                          *options.device_memory,
                          options.probe},
        mutex_, [this] { WakeReadyStages(); },
        [this](int stage, Transfer::Kind kind, const std::exception& error) {
          Abort(MoveFailure(stage, kind, error, options_));
        });
    context_.copies = &mover_->copies();
  }
  const bool has_checkpoints =
      IsFirstRank() ? options.checkpoints.sink != nullptr : options.has_checkpoints;
  if (!has_checkpoints) return;
  CaptureRole role = link_ ? OwnRole() : CaptureRole{};
  if (mover_) role.snapshot = [this](int layer) { return mover_->copies().Snapshot(layer); };
  checkpoints_.emplace(experiment.space, experiment.spec.training.optimizer, experiment.layers,
                       options.checkpoints, options.first, std::move(role));
  context_.checkpoints = &*checkpoints_;
}

Pipeline::~Pipeline() {
  // Where Run was left by an exception.
  if (link_) options_.network->Close(/*linger_ms=*/0);
  if (payloads_) payloads_->Abort();
  if (mover_) mover_->Stop();
}

TrainingOutcome Pipeline::Run() {
  // What made the layers was enqueued on another stream than the stages'.
  for (const at::Device device : experiment_.devices) SynchronizeDevice(device);
  if (link_) JoinRanks();
  if (IsFirstRank()) {
    const std::lock_guard lock(mutex_);
    if (!over_) AdmitSubnets();
  }
  std::vector<std::thread> threads;
  StartThreads(threads);
  if (link_) WatchRun();
  has_stuck_stage_ = link_ && !AwaitThreads();
  for (std::thread& thread : threads) has_stuck_stage_ ? thread.detach() : thread.join();
  if (!has_stuck_stage_) results_.Close();
  if (mover_) SettleLayers();
  if (!has_stuck_stage_) SettleDevices();
  if (link_) LeaveRanks();
  if (checkpoints_) {
    const Status closed = checkpoints_->Close(/*at_end=*/failure_.empty() && !bad_loss_);
    if (!closed && failure_.empty()) failure_ = closed.error().message;
  }
  return Outcome();
}

void Pipeline::SettleDevices() {
  try {
    for (const at::Device device : experiment_.devices) SynchronizeDevice(device);
    BringHome(experiment_.layers, experiment_.home);
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex_);
    Abort(ExceptionText(error));
  }
}

void Pipeline::StartThreads(std::vector<std::thread>& threads) {
  try {
    if (mover_) StartMover();
    for (int stage = placement_.Begin(rank_); stage < placement_.End(rank_); ++stage) {
      StartThread(threads, [this, stage] { RunStage(stage); });
    }
    if (link_ && IsFirstRank()) StartThread(threads, [this] { ServeReports(); });
  } catch (const std::system_error& error) {  // the machine has no thread left
    const std::lock_guard lock(mutex_);
    Abort(fmt::format("thread {} could not be started: {}", threads.size(), error.what()));
  }
}

void Pipeline::StartMover() {
  const std::lock_guard lock(mutex_);
  mover_->Start();
  WakeReadyStages();
}

void Pipeline::StartThread(std::vector<std::thread>& threads, const std::function<void()>& serve) {
  {
    const std::lock_guard lock(mutex_);
    ++threads_running_;
  }
  const auto end = [this] {
    const std::lock_guard lock(mutex_);
    --threads_running_;
    changed_.notify_all();
  };
  try {
    threads.emplace_back([serve, end] {
      serve();
      end();
    });
  } catch (const std::system_error&) {
    end();
    throw;
  }
}

void Pipeline::RunStage(int index) {
  try {
    at::set_num_threads(static_cast<int>(options_.threads_per_stage));
    Stage stage(context_, index);
    ServeStage(index, stage);
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex_);
    Abort(StageFailure(index, executed_[index], error, options_));
  }
}

void Pipeline::ServeStage(int index, Stage& stage) {
  Lock lock(mutex_);
  while (true) {
    wake_[index].wait(lock, [&] { return over_ || scheduler_.HasReady(index); });
    if (over_) return;
    const Task task = *scheduler_.Next(index);
    executed_[index] = task;
    SubnetRun& subnet = subnets_.at(task.seq);
    lock.unlock();
    if (options_.probe) options_.probe->BeforeTask(index, task);
    stage.Execute(task, subnet);
    const Status room = options_.parts ? options_.parts->WaitForRoom() : Status{};
    lock.lock();
    executed_[index].reset();
    if (over_) return;
    if (!room) return Abort(room.error().message);
    TaskFinished(index, task, lock);
    WakeReadyStages();
  }
}

void Pipeline::TaskFinished(int stage, const Task& task, Lock& lock) {
  last_event_ = Clock::now();
  if (mover_ && task.kind == TaskKind::kUpdate) mover_->Updated({task.seq, stage});
  const bool is_last = scheduler_.Finished(stage, task, messages_);
  Send(messages_);
  if (is_last) EndSubnet(task.seq, lock);
}

void Pipeline::EndSubnet(std::int64_t seq, Lock& lock) {
  const auto end = [this, seq](Lock& held) {
    IsFirstRank() ? FinishSubnet(seq, held) : FinishPart(seq, held);
  };
  if (!results_.is_behind()) return end(lock);
  results_.Add(nullptr, [this, end] {
    Lock own_lock(mutex_);
    // Where a channel broke, or was told to let go, devices have computed on anything.
    if (payloads_ && (!PollChannels() || !failure_.empty())) return;
    end(own_lock);
    WakeReadyStages();
  });
}

void Pipeline::FinishSubnet(std::int64_t seq, Lock& lock) {
  const float loss = subnets_.at(seq).loss;
  subnets_.erase(seq);
  WakeReadyStages();
  lock.unlock();
  Status status = ReportFinished(seq, loss);
  if (status && checkpoints_) status = checkpoints_->OnFinished(seq);
  lock.lock();
  if (!status) Abort(status.error().message);
  if (options_.stop_on_nan && !std::isfinite(loss)) {
    if (!bad_loss_ || seq < bad_loss_->first) bad_loss_ = {seq, loss};
  }
  if (!over_) AdmitSubnets();
}

Status Pipeline::ReportFinished(std::int64_t seq, float loss) {
  const std::lock_guard one_at_a_time(reports_);
  ++finished_;
  const Status status = options_.observer ? options_.observer->OnSubnetFinished(seq) : Status{};
  if (options_.on_progress) options_.on_progress(finished_, loss);
  return status;
}

void Pipeline::AdmitSubnets() {
  const bool stops = bad_loss_ || is_stop_requested_ || (options_.stop && options_.stop->load());
  // Those that devices have not finished are in flight too.
  while (!stops && scheduler_.CanAdmit() && std::ssize(subnets_) < options_.in_flight &&
         admitted_ < Planned()) {
    Admit(SeqOf(admitted_));
  }
  if (!subnets_.empty()) return;
  over_ = true;  // nothing left, and nothing to come
  WakeReadyStages();
}

void Pipeline::Admit(std::int64_t seq) {
  ++admitted_;
  if (mover_) Foresee();
  if (checkpoints_) checkpoints_->OnAdmitted(seq);
  SubnetRun& subnet = subnets_[seq];
  subnet.seq = seq;
  subnet.choices = experiment_.sampler->Draw(seq);
  subnet.samples = experiment_.dataset->SamplesOf(seq);
  if (options_.probe) options_.probe->OnSamples(seq, subnet.samples);
  subnet.learning_rate = LearningRate(experiment_.spec.training, seq);
  if (context_.observer) {
    context_.observer->OnSubnetStarted(seq, subnet.choices, subnet.samples);
  }
  const bool is_sound = scheduler_.Admit(seq, subnet.choices, messages_);
  subnet.ranges = scheduler_.RangesOf(seq);
  Send(messages_);
  if (!is_sound) Abort(fmt::format("subnet {} came out of turn", seq));
  if (mover_) mover_->Admit(seq);
}

void Pipeline::Foresee() {
  // From other ranks a version may come for any subnet that rank 0 has admitted.
  const std::int64_t ahead = std::max(kForeseen, options_.in_flight);
  for (; foreseen_ < std::min(Planned(), admitted_ + ahead); ++foreseen_) {
    const std::int64_t seq = SeqOf(foreseen_);
    const auto choices = experiment_.sampler->Draw(seq);
    mover_->Foresee(seq, choices, partition_.Ranges(choices));
  }
}

void Pipeline::MoveLayers() {
  for (const Residency& part : mover_->TakeResident()) scheduler_.Resident(part);
  for (const Residency& part : scheduler_.TakeWanted()) mover_->Want(part);
  SendLeaving();
  mover_->Dispatch();
}

void Pipeline::SettleLayers() {
  {
    Lock lock(mutex_);
    if (failure_.empty()) mover_->Settle(lock);
  }
  mover_->Stop();
}

void Pipeline::WakeReadyStages() {
  if (mover_ && !over_) MoveLayers();
  for (int stage = placement_.Begin(rank_); stage < placement_.End(rank_); ++stage) {
    if (over_ || scheduler_.HasReady(stage)) wake_[stage].notify_one();
  }
  if (!over_) return;
  changed_.notify_all();
  has_report_.notify_all();
}

void Pipeline::Abort(const std::string& why) {
  Fail(link_ ? fmt::format("{}: {}", link_->NameOf(rank_), why) : why);
}

void Pipeline::Fail(const std::string& failure) {
  if (!failure_.empty()) return;
  failure_ = failure;
  over_ = true;
  // Also what another rank has told: so a rank hears why before it sees this one leave.
  if (link_) link_->SendToOthers(MessageKind::kAbort, failure);
  if (payloads_) payloads_->Abort();
  WakeReadyStages();
}

std::int64_t Pipeline::SeqOf(std::int64_t index) const {
  return options_.sequence ? (*options_.sequence)[index] : index;
}

std::int64_t Pipeline::Planned() const {
  return options_.sequence ? std::ssize(*options_.sequence) : experiment_.spec.training.subnets;
}

std::int64_t Pipeline::RawNanoseconds() const {
  const std::chrono::nanoseconds passed = Clock::now() - start_;
  return options_.begin_ns + passed.count();
}

std::int64_t Pipeline::Nanoseconds() const {
  return std::max<std::int64_t>(0, RawNanoseconds() + clock_offset_.nanoseconds());
}

RunEnd Pipeline::OwnEnd() const {
  const std::int64_t planned = Planned();
  if (!failure_.empty()) {
    // Which of several ranks failed is not all that the record is to say.
    const bool tells_count = link_ && IsFirstRank();
    return {RunStatus::kFailed,
            tells_count ? fmt::format("{}; {} of {} subnets had finished", failure_,
                                      finished_.load(), planned)
                        : failure_,
            finished_};
  }
  if (bad_loss_) {
    return {RunStatus::kFailed,
            fmt::format("the loss of subnet {} is {}", bad_loss_->first,
                        std::isnan(bad_loss_->second) ? "NaN" : "infinite"),
            finished_};
  }
  if (finished_ < planned) {
    return {RunStatus::kInterrupted,
            fmt::format("stopped on request after {} of {} subnets", finished_.load(), planned),
            finished_};
  }
  return {RunStatus::kComplete, "", finished_};
}

TrainingOutcome Pipeline::Outcome() const {
  RunEnd end = failure_.empty() && end_ ? *end_ : OwnEnd();
  const auto sum = [](const std::vector<std::int64_t>& counts) {
    return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  };
  return {end.status,
          std::move(end.detail),
          end.subnets,
          scheduler_.versions_moved() + sum(versions_moved_),
          (link_ ? link_->bytes_moved() : 0) + sum(bytes_moved_),
          mover_ ? std::optional(mover_->statistics()) : std::nullopt};
}

}  // namespace verbatim
