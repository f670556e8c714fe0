#include "trainer/pipeline.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <exception>
#include <system_error>

#include "base/check.h"
#include "base/exception_text.h"
#include "trainer/out_of_memory.h"

namespace verbatim {

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

}  // namespace verbatim
