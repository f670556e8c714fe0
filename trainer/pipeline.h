// One training run, or one rank's part of it: stage threads, driven by the scheduler, and, on
// several ranks, what they tell each other.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "recorder/rank_report.h"
#include "schedule/partition.h"
#include "schedule/placement.h"
#include "schedule/policy.h"
#include "schedule/rank_scheduler.h"
#include "schedule/recompute.h"
#include "trainer/checkpoint_capture.h"
#include "trainer/experiment.h"
#include "trainer/in_process_transport.h"
#include "trainer/layer_mover.h"
#include "trainer/rank_link.h"
#include "trainer/stage.h"
#include "trainer/training.h"

namespace verbatim {

/// Rank 0, or the only one, admits subnets, reports them and decides when the run is over. The
/// others follow: they admit what it admits, and tell it what they have done.
///
/// Threads: the caller's of Run, one per stage of this rank, the network's, and on rank 0 of
/// several one that reports subnets whose last part was done elsewhere, so that a slow observer
/// does not keep the network's thread; where layers move, those of the LayerMover, and where
/// devices compute behind their host one that waits for what they compute. All members below the
/// mutex are guarded by it.
class Pipeline {
 public:
  /// References outlive it.
  Pipeline(Experiment& experiment, const TrainingOptions& options, const Partition& partition,
           const RecomputePlan& recompute, const Policy& policy, const Placement& placement);
  /// Nothing comes from the network afterwards.
  ~Pipeline();

  /// Call once.
  TrainingOutcome Run();
  /// After Run: a stage has not returned from its task. Its thread is left to itself and still uses
  /// this object, which must not be destroyed then.
  bool has_stuck_stage() const { return has_stuck_stage_; }

 private:
  using Lock = std::unique_lock<std::mutex>;
  using Clock = std::chrono::steady_clock;

  // threads: pipeline.cpp
  bool IsFirstRank() const { return rank_ == 0; }
  void StartThreads(std::vector<std::thread>& threads);
  void StartThread(std::vector<std::thread>& threads, const std::function<void()>& serve);
  void RunStage(int stage);
  void ServeStage(int index, Stage& stage);
  /// Has layers moved as the scheduler wants them now, and wakes the stages that have something to
  /// do: after anything that the scheduler learns.
  void WakeReadyStages();
  /// The run has failed, here.
  void Abort(const std::string& why);
  /// The run has failed, somewhere: ends it on all ranks, if nothing has before.
  void Fail(const std::string& failure);

  // subnets on the stages of this rank: pipeline_subnets.cpp
  void AdmitSubnets();
  void Admit(std::int64_t seq);
  void TaskFinished(int stage, const Task& task, Lock& lock);
  /// The subnet is finished on this rank, or, on rank 0, everywhere: tells so once all that its
  /// stages have computed for the observer is there.
  void EndSubnet(std::int64_t seq, Lock& lock);
  void FinishSubnet(std::int64_t seq, Lock& lock);
  Status ReportFinished(std::int64_t seq, float loss);

  // where layers are: pipeline_layers.cpp
  void StartMover();
  /// Where layers move: tells the mover of the subnets that come next, far enough ahead.
  void Foresee();
  void MoveLayers();
  /// Whether the layer is one of those that move.
  bool Moves(const Layer& layer) const { return mover_ && layer.delay == 0; }
  /// After the last subnet: all layers are at home again.
  void SettleLayers();
  /// After the stages have ended: all that devices were given is done, and all layers are where
  /// they were before training.
  void SettleDevices();

  // the run: pipeline_outcome.cpp
  /// The `index`-th subnet of the run.
  std::int64_t SeqOf(std::int64_t index) const;
  std::int64_t Planned() const;
  /// This process's clock since the run's start, and rank 0's.
  std::int64_t RawNanoseconds() const;
  std::int64_t Nanoseconds() const;
  TrainingOutcome Outcome() const;
  RunEnd OwnEnd() const;

  // with other ranks: pipeline_ranks.cpp
  /// Null where tensors go through the network.
  std::unique_ptr<DevicePayloads> MakePayloads() const;
  void JoinRanks();
  /// Opens the channels between devices, once every rank has invited every other.
  void OpenChannels(Lock& lock);
  /// Whether all channels are open. Fails the run where one is broken.
  bool PollChannels();
  void SendLayersToOthers();
  /// Until the run is over here.
  void WatchRun();
  /// Waits for the threads; not for those that have failed the run by doing nothing. Whether all
  /// have ended.
  bool AwaitThreads();
  void LeaveRanks();
  void CollectLayers(Lock& lock);
  void HandLayersOver(Lock& lock);
  /// Waits until `is_reached` or the run has failed, with an eye on requests to stop and on stalls.
  void WaitFor(Lock& lock, const std::function<bool()>& is_reached);
  void PassStopOn();
  void CheckForStall();
  std::string Awaited() const;
  /// Reports subnets whose last part other ranks have done, until the run is over.
  void ServeReports();
  void Send(std::vector<RankMessage>& messages);
  void SendVersion(const RankMessage& message);
  /// Where layers move: sends those that wait for their way home.
  void SendLeaving();
  /// Other ranks: the subnet is finished on this one's stages.
  void FinishPart(std::int64_t seq, Lock& lock);
  void SendReport(std::int64_t seq);
  CaptureRole OwnRole();
  void OnMessage(int from, Message message);
  /// Errors: no rank of this run would send that.
  Status Handle(int from, const Message& message);
  Status HandleAsFirst(int from, const Message& message);
  Status HandleAsOther(int from, const Message& message);
  Status OnTask(int from, const Message& message);
  Status OnVersion(int from, const Message& message);
  Status OnPartFinished(int from, const Message& message);
  Status OnLayer(int from, const Message& message);
  Status OnCapture(int from, const Message& message);
  Status OnInvite(int from, const Message& message);
  void AskForTime();
  Status OnQuestion(int from);
  Status OnAnswer(const Message& message);
  void OnLost(const PeerName& peer, const std::string& why);

  Experiment& experiment_;
  const TrainingOptions& options_;
  const Partition& partition_;
  const Placement placement_;
  const int rank_;
  InProcessTransport transport_;
  const StageDevices devices_;
  const OpenStream open_stream_;
  std::mutex delayed_layers_;
  ClockOffset clock_offset_;
  const Clock::time_point start_ = Clock::now();
  RankObserver rank_observer_;
  RunContext context_;
  const std::unique_ptr<DevicePayloads> payloads_;
  std::optional<RankLink> link_;  ///< on several ranks

  std::optional<CheckpointCapture> checkpoints_;  ///< its locks are taken after those here

  std::mutex reports_;  ///< taken without the mutex below
  /// Rank 0. Changed under reports_.
  std::atomic<std::int64_t> finished_ = options_.first;

  std::mutex mutex_;
  RankScheduler scheduler_;
  /// In flight, here; nodes stay where they are. On a rank other than 0 a task may come before the
  /// news of its subnet's admission, and leaves a tied embedding here.
  std::map<std::int64_t, SubnetRun> subnets_;
  std::vector<std::condition_variable> wake_;  ///< by stage
  std::vector<RankMessage> messages_;          ///< empty between two calls
  std::int64_t admitted_ = options_.first;
  std::int64_t foreseen_ = options_.first;
  std::optional<std::pair<std::int64_t, float>> bad_loss_;  ///< lowest seq
  std::string failure_;
  bool over_ = false;
  int threads_running_ = 0;
  bool has_stuck_stage_ = false;
  std::optional<LayerMover> mover_;   ///< null: all layers are where the stages are
  std::vector<RankMessage> leaving_;  ///< versions for other ranks that are not at home yet

  // on several ranks
  std::condition_variable changed_;            ///< for WaitFor
  std::condition_variable has_report_;         ///< or the run is over
  std::deque<std::int64_t> to_report_;         ///< finished everywhere
  std::vector<std::optional<Task>> executed_;  ///< by stage: what it executes
  Clock::time_point last_event_ = start_;      ///< a task's end or a message
  bool is_stop_requested_ = false;             ///< by another rank; elsewhere: passed on
  std::vector<std::string> invitations_;       ///< by rank: to the channels that lead here
  int ranks_inviting_ = 0;                     ///< that have invited this one
  std::optional<RunEnd> end_;                  ///< other ranks: how rank 0 says the run ended
  bool may_leave_ = false;                     ///< other ranks
  int ranks_asked_ = 0;                        ///< rank 0: that have asked their last question
  std::vector<int> questions_;                 ///< rank 0: by rank
  std::set<std::pair<std::int64_t, int>> parts_finished_;  ///< rank 0: (seq, rank) in flight
  int ranks_done_ = 0;                        ///< rank 0: that have handed their layers over
  std::vector<bool> done_;                    ///< rank 0: by rank: which those are
  std::vector<std::int64_t> versions_moved_;  ///< rank 0: by rank, as last reported
  std::vector<std::int64_t> bytes_moved_;     ///< likewise

  /// Its thread uses all that is above.
  ResultQueue results_;
};

}  // namespace verbatim
