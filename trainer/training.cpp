#include "trainer/training.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/exception_text.h"
#include "schedule/partition.h"
#include "schedule/policy.h"
#include "schedule/scheduler.h"
#include "trainer/checkpoint_capture.h"
#include "trainer/in_process_transport.h"
#include "trainer/stage.h"

namespace verbatim {
namespace {

/// One training run. All members below the mutex are guarded by it.
class Pipeline {
 public:
  Pipeline(Experiment& experiment, const TrainingOptions& options, const Partition& partition,
           const Policy& policy)
      : experiment_(experiment),
        options_(options),
        transport_(partition.stages()),
        context_{experiment.spec,
                 experiment.space,
                 partition.stages(),
                 *experiment.dataset,
                 experiment.layers,
                 delayed_layers_,
                 transport_,
                 experiment.device,
                 options.record_level,
                 options.observer,
                 [begin_ns = options.begin_ns, start = std::chrono::steady_clock::now()] {
                   const std::chrono::nanoseconds passed = std::chrono::steady_clock::now() - start;
                   return begin_ns + passed.count();
                 },
                 options.probe},
        scheduler_(
            experiment.space, partition, policy,
            SchedulerOptions{static_cast<std::int32_t>(experiment.spec.training.microbatches),
                             options.in_flight}),
        wake_(static_cast<std::size_t>(partition.stages())) {
    if (!options.checkpoints.sink) return;
    checkpoints_.emplace(experiment.space, experiment.spec.training.optimizer, experiment.layers,
                         options.checkpoints, options.first);
    context_.checkpoints = &*checkpoints_;
  }

  TrainingOutcome Run() {
    {
      const std::lock_guard lock(mutex_);
      AdmitSubnets();
    }
    std::vector<std::thread> threads;
    StartThreads(threads);
    for (std::thread& thread : threads) thread.join();
    if (checkpoints_) CloseCheckpoints();
    return Outcome();
  }

 private:
  void CloseCheckpoints() {
    const Status closed = checkpoints_->Close(/*at_end=*/failure_.empty() && !bad_loss_);
    if (!closed && failure_.empty()) failure_ = closed.error().message;
  }

  void StartThreads(std::vector<std::thread>& threads) {
    try {
      for (int stage = 0; stage < static_cast<int>(wake_.size()); ++stage) {
        threads.emplace_back([this, stage] { RunStage(stage); });
      }
    } catch (const std::system_error& error) {  // the machine has no thread left
      const std::lock_guard lock(mutex_);
      Abort(fmt::format("stage {} could not be started: {}", threads.size(), error.what()));
    }
  }

  void RunStage(int index) {
    try {
      at::set_num_threads(static_cast<int>(options_.threads_per_stage));
      Stage stage(context_, index);
      ServeStage(index, stage);
    } catch (const std::exception& error) {
      const std::lock_guard lock(mutex_);
      Abort(fmt::format("stage {}: {}", index, ExceptionText(error)));
    }
  }

  void ServeStage(int index, Stage& stage) {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_[index].wait(lock, [&] { return over_ || scheduler_.HasReady(index); });
      if (over_) return;
      const Task task = *scheduler_.Next(index);
      SubnetRun& subnet = subnets_.at(task.seq);
      lock.unlock();
      if (options_.probe) options_.probe->BeforeTask(index, task);
      stage.Execute(task, subnet);
      lock.lock();
      if (over_) return;
      const bool is_last = scheduler_.Finished(index, task, deliveries_);
      Deliver();
      if (is_last) FinishSubnet(task.seq, lock);
      WakeReadyStages();
    }
  }

  /// In one process, what sets out has arrived: stages share their memory.
  void Deliver() {
    for (const Delivery& delivery : deliveries_) {
      if (delivery.kind == Delivery::Kind::kVersion) ++versions_moved_;
      scheduler_.Deliver(delivery);
    }
    deliveries_.clear();
  }

  void FinishSubnet(std::int64_t seq, std::unique_lock<std::mutex>& lock) {
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

  Status ReportFinished(std::int64_t seq, float loss) {
    const std::lock_guard one_at_a_time(reports_);
    ++finished_;
    const Status status = options_.observer ? options_.observer->OnSubnetFinished(seq) : Status{};
    if (options_.on_progress) options_.on_progress(finished_, loss);
    return status;
  }

  void AdmitSubnets() {
    const bool stops = bad_loss_ || (options_.stop && options_.stop->load());
    while (!stops && scheduler_.CanAdmit() && admitted_ < Planned()) {
      const std::int64_t seq = options_.sequence ? (*options_.sequence)[admitted_] : admitted_;
      ++admitted_;
      if (checkpoints_) checkpoints_->OnAdmitted(seq);
      SubnetRun subnet;
      subnet.seq = seq;
      subnet.choices = experiment_.sampler->Draw(seq);
      subnet.samples = experiment_.dataset->SamplesOf(seq);
      if (options_.probe) options_.probe->OnSamples(seq, subnet.samples);
      subnet.learning_rate = LearningRate(experiment_.spec.training, seq);
      if (options_.observer) {
        options_.observer->OnSubnetStarted(seq, subnet.choices, subnet.samples);
      }
      scheduler_.Admit(seq, subnet.choices, deliveries_);
      Deliver();
      subnet.ranges = scheduler_.RangesOf(seq);
      subnets_.emplace(seq, std::move(subnet));
    }
    if (subnets_.empty()) over_ = true;  // nothing left, and nothing to come
  }

  void WakeReadyStages() {
    for (int stage = 0; stage < static_cast<int>(wake_.size()); ++stage) {
      if (over_ || scheduler_.HasReady(stage)) wake_[stage].notify_one();
    }
  }

  void Abort(std::string why) {
    if (failure_.empty()) failure_ = std::move(why);
    over_ = true;
    WakeReadyStages();
  }

  std::int64_t Planned() const {
    return options_.sequence ? std::ssize(*options_.sequence) : experiment_.spec.training.subnets;
  }

  TrainingOutcome Outcome() const {
    const std::int64_t planned = Planned();
    if (!failure_.empty()) return {RunStatus::kFailed, failure_, finished_, versions_moved_};
    if (bad_loss_) {
      return {RunStatus::kFailed,
              fmt::format("the loss of subnet {} is {}", bad_loss_->first,
                          std::isnan(bad_loss_->second) ? "NaN" : "infinite"),
              finished_, versions_moved_};
    }
    if (finished_ < planned) {
      return {RunStatus::kInterrupted,
              fmt::format("stopped on request after {} of {} subnets", finished_, planned),
              finished_, versions_moved_};
    }
    return {RunStatus::kComplete, "", finished_, versions_moved_};
  }

  Experiment& experiment_;
  const TrainingOptions& options_;
  InProcessTransport transport_;
  std::mutex delayed_layers_;
  RunContext context_;

  std::optional<CheckpointCapture> checkpoints_;  ///< its locks are taken after those here

  std::mutex reports_;                      ///< taken without the mutex below
  std::int64_t finished_ = options_.first;  ///< guarded by reports_

  std::mutex mutex_;
  Scheduler scheduler_;
  std::map<std::int64_t, SubnetRun> subnets_;  ///< in flight; nodes stay where they are
  std::vector<std::condition_variable> wake_;  ///< by stage
  std::vector<Delivery> deliveries_;           ///< empty between two calls
  std::int64_t admitted_ = options_.first;
  std::int64_t versions_moved_ = 0;
  std::optional<std::pair<std::int64_t, float>> bad_loss_;  ///< lowest seq
  std::string failure_;
  bool over_ = false;
};

}  // namespace

Status CheckTraining(const Experiment& experiment, const TrainingOptions& options) {
  if (options.in_flight < 1) {
    return UsageError(
        fmt::format("--in-flight {}: at least one subnet must be in flight", options.in_flight));
  }
  if (options.threads_per_stage < 1) {
    return UsageError(fmt::format("--threads-per-stage {}: a stage needs at least one thread",
                                  options.threads_per_stage));
  }
  if (options.policy == "sequential" && options.stages != 1) {
    return UsageError(
        fmt::format("--policy sequential is the reference on one stage, not on {}", options.stages),
        "leave --stages out, or use --policy causal");
  }
  RETURN_IF_ERROR(CheckTrainable(options.policy));
  if (options.checkpoints.sink && options.policy == "asynchronous") {
    return UsageError("--policy asynchronous ignores causality, so there is no checkpoint of it",
                      "take none: --keep-checkpoints 0");
  }
  RETURN_IF_ERROR(MakePartition(options.partition, experiment.space, {}, options.stages));
  return {};
}

Result<TrainingOutcome> Train(Experiment& experiment, const TrainingOptions& options) {
  VERBATIM_CHECK(!options.sequence || (options.first == 0 && !options.checkpoints.sink));
  RETURN_IF_ERROR(CheckTraining(experiment, options));
  ASSIGN_OR_RETURN(auto policy, MakePolicy(options.policy));
  const CostTable costs =
      options.costs ? *options.costs : AnalyticCosts(experiment.space, experiment.spec);
  ASSIGN_OR_RETURN(auto partition,
                   MakePartition(options.partition, experiment.space, costs, options.stages));
  return Pipeline(experiment, options, *partition, *policy).Run();
}

}  // namespace verbatim
