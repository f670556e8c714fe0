#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <mutex>

#include "base/exception_text.h"
#include "trainer/cuda/nccl_payloads.h"
#include "trainer/layer_file.h"
#include "trainer/pipeline.h"

namespace verbatim {
namespace {

using namespace std::chrono_literals;

/// How often a rank looks for requests to stop and for stalls.
constexpr auto kWatchInterval = 50ms;
/// For a stage whose rank has failed to end its task, if it does anything.
constexpr std::chrono::milliseconds kEndGraceMax = 10s;
constexpr std::int64_t kLingerMs = 10'000;

}  // namespace

std::unique_ptr<DevicePayloads> Pipeline::MakePayloads() const {
  if (!options_.network) return nullptr;
  PayloadEnds ends;
  ends.rank = rank_;
  ends.ranks = placement_.ranks();
  ends.first = devices_.Of(placement_.Begin(rank_));
  ends.last = devices_.Of(placement_.End(rank_) - 1);
  ends.home = devices_.home();
  if (options_.open_payloads) return (*options_.open_payloads)(ends);
  return experiment_.device.is_cpu() ? nullptr : OpenNcclPayloads(ends);
}

void Pipeline::JoinRanks() {
  Lock lock(mutex_);
  options_.network->Start(
      {.on_message = [this](int from, Message message) { OnMessage(from, std::move(message)); },
       .on_lost = [this](const PeerName& peer, const std::string& why) { OnLost(peer, why); }});
  // Before a rank says that it has begun: nothing is sent to one whose channels are not open.
  if (payloads_) OpenChannels(lock);
  if (!IsFirstRank()) return AskForTime();
  // The others have them when they have an answer to a question.
  if (options_.sends_layers) SendLayersToOthers();
  WaitFor(lock, [this] { return ranks_asked_ == link_->ranks() - 1; });
}

void Pipeline::OpenChannels(Lock& lock) {
  for (int to = 0; to < link_->ranks(); ++to) {
    if (to != rank_) link_->Send(to, MessageKind::kInvite, 0, payloads_->Invite(to));
  }
  WaitFor(lock, [this] { return ranks_inviting_ == link_->ranks() - 1; });
  if (!failure_.empty()) return;
  if (const Status begun = payloads_->Open(invitations_); !begun) {
    return Abort(begun.error().message);
  }
  WaitFor(lock, [this] { return PollChannels(); });
}

bool Pipeline::PollChannels() {
  const Result<bool> are_open = payloads_->Poll();
  if (!are_open) Abort(are_open.error().message);
  return are_open && *are_open;
}

void Pipeline::SendLayersToOthers() {
  for (const Layer& layer : experiment_.space.layers()) {
    if (!layer.IsVersioned() || experiment_.layers[layer.id].version < 0) continue;
    const LayerState copy = CopyToHost(layer, experiment_.layers[layer.id]);
    for (int to = 1; to < link_->ranks(); ++to) link_->SendLayer(to, layer.id, copy);
  }
}

void Pipeline::WatchRun() {
  Lock lock(mutex_);
  WaitFor(lock, [this] {
    if (payloads_ && !over_) PollChannels();
    return over_;
  });
}

bool Pipeline::AwaitThreads() {
  const std::chrono::milliseconds stall(options_.stall_timeout_ms);
  Lock lock(mutex_);
  const auto patience =
      std::max(last_event_ + stall, Clock::now() + std::min(kEndGraceMax, stall / 4));
  while (threads_running_ > 0) {
    if (!failure_.empty() && Clock::now() > patience) return false;
    changed_.wait_for(lock, kWatchInterval);
  }
  return true;
}

void Pipeline::LeaveRanks() {
  {
    Lock lock(mutex_);
    last_event_ = Clock::now();
    if (failure_.empty()) IsFirstRank() ? CollectLayers(lock) : HandLayersOver(lock);
  }
  options_.network->Close(kLingerMs);
}

void Pipeline::CollectLayers(Lock& lock) {
  link_->SendToOthers(MessageKind::kEnd, EncodeRunEnd(OwnEnd()));
  WaitFor(lock, [this] { return ranks_done_ == link_->ranks() - 1; });
  if (!failure_.empty()) return;
  options_.network->ExpectLeaving();
  link_->SendToOthers(MessageKind::kDone);
}

void Pipeline::HandLayersOver(Lock& lock) {
  for (const Layer& layer : experiment_.space.layers()) {
    if (layer.IsVersioned() && scheduler_.HolderOf(layer.id) == rank_) {
      link_->SendLayer(0, layer.id, experiment_.layers[layer.id]);
    }
  }
  link_->Send(0, MessageKind::kDone);
  WaitFor(lock, [this] { return may_leave_; });
}

void Pipeline::WaitFor(Lock& lock, const std::function<bool()>& is_reached) {
  while (!is_reached() && failure_.empty()) {
    changed_.wait_for(lock, kWatchInterval);
    PassStopOn();
    CheckForStall();
  }
}

void Pipeline::PassStopOn() {
  if (IsFirstRank() || is_stop_requested_ || !options_.stop || !options_.stop->load()) return;
  is_stop_requested_ = true;
  link_->Send(0, MessageKind::kStop);
}

void Pipeline::CheckForStall() {
  const auto silent = std::chrono::duration<double>(Clock::now() - last_event_);
  const auto timeout =
      std::chrono::duration<double>(std::chrono::milliseconds(options_.stall_timeout_ms));
  if (silent < timeout || !failure_.empty()) return;
  for (int stage = placement_.Begin(rank_); stage < placement_.End(rank_); ++stage) {
    if (!executed_[stage]) continue;
    const Task& task = *executed_[stage];
    return Abort(
        fmt::format("stage {} has not finished the {} of subnet {}, micro-batch {}, in {:g} s",
                    stage, NameOf(task.kind), task.seq, task.microbatch, timeout.count()));
  }
  // Whoever has a stage that executes knows better, and is to say so first; then rank 0, which
  // knows who is awaited.
  if (silent < (IsFirstRank() ? 1.25 : 1.5) * timeout) return;
  Abort(fmt::format("nothing has happened for {:g} s: {}", timeout.count(),
                    IsFirstRank() ? Awaited() : "rank 0 is silent"));
}

std::string Pipeline::Awaited() const {
  std::string ranks;
  for (int rank = 1; rank < link_->ranks(); ++rank) {
    const bool is_awaited =
        ranks_asked_ < link_->ranks() - 1 ? questions_[rank] < ClockOffset::kQuestions
        : subnets_.empty()                ? !done_[rank]
                           : !parts_finished_.contains({subnets_.begin()->first, rank});
    if (!is_awaited) continue;
    ranks += (ranks.empty() ? "" : ", ") + link_->NameOf(rank);
  }
  const std::string what =
      subnets_.empty() ? "" : fmt::format(" with subnet {}", subnets_.begin()->first);
  return fmt::format("{} not done{}", ranks.empty() ? "this rank is" : ranks + " is", what);
}

void Pipeline::ServeReports() {
  try {
    Lock lock(mutex_);
    while (true) {
      has_report_.wait(lock, [this] { return over_ || !to_report_.empty(); });
      if (to_report_.empty()) return;
      const std::int64_t seq = to_report_.front();
      to_report_.pop_front();
      EndSubnet(seq, lock);
      WakeReadyStages();
    }
  } catch (const std::exception& error) {  // no memory left
    const std::lock_guard lock(mutex_);
    Abort(ExceptionText(error));
  }
}

void Pipeline::Send(std::vector<RankMessage>& messages) {
  for (const RankMessage& message : messages) {
    switch (message.kind) {
      case RankMessage::Kind::kAdmitted:
        link_->Send(message.to, MessageKind::kAdmitted, message.seq);
        break;
      case RankMessage::Kind::kDelivery:
        if (message.delivery.kind == Delivery::Kind::kVersion) {
          SendVersion(message);
        } else {
          link_->SendTask(message.to, message.delivery, subnets_.at(message.delivery.task.seq));
        }
        break;
      case RankMessage::Kind::kFinished:  // see FinishPart
        break;
    }
  }
  messages.clear();
}

void Pipeline::SendVersion(const RankMessage& message) {
  const Delivery& delivery = message.delivery;
  const Layer& layer = experiment_.space.layer(delivery.layer);
  if (Moves(layer) && !mover_->Release(layer.id)) {
    leaving_.push_back(message);
    return;
  }
  if (checkpoints_ && delivery.is_base) checkpoints_->BeforeLeaving(delivery.task.seq, layer);
  link_->SendVersion(message.to, delivery);
  if (Moves(layer)) mover_->HasLeft(layer.id);
}

void Pipeline::SendLeaving() {
  for (const RankMessage& message : std::exchange(leaving_, {})) SendVersion(message);
}

CaptureRole Pipeline::OwnRole() {
  return {rank_, [this](int layer) { return scheduler_.HolderOf(layer); },
          [this](std::int64_t cut, const CapturedLayer& layer) { link_->SendCapture(cut, layer); },
          &delayed_layers_};
}

void Pipeline::FinishPart(std::int64_t seq, Lock& lock) {
  if (checkpoints_) {
    WakeReadyStages();
    lock.unlock();
    const Status captured = checkpoints_->OnFinished(seq);
    lock.lock();
    if (!captured) Abort(captured.error().message);
  }
  SendReport(seq);
  subnets_.erase(seq);
}

void Pipeline::SendReport(std::int64_t seq) {
  RankReport report = rank_observer_.Take(seq);
  if (placement_.End(rank_) == placement_.stages()) report.loss = subnets_.at(seq).loss;
  report.versions_moved = scheduler_.versions_moved();
  report.bytes_moved = link_->bytes_moved();
  std::string text = EncodeReport(seq, std::move(report));
  // First, for rank 0 may record the subnet as soon as it has the report.
  if (options_.parts) {
    if (const Status kept = options_.parts->AddPart(seq, text); !kept) {
      return Abort(kept.error().message);
    }
  }
  link_->Send(0, MessageKind::kFinished, seq, std::move(text));
}

void Pipeline::OnMessage(int from, Message message) {
  try {
    {
      const std::lock_guard lock(mutex_);
      if (!failure_.empty()) return;
      last_event_ = Clock::now();
    }
    const Status handled = Handle(from, message);
    if (handled) return;
    OnLost(options_.network->NameOf(from),
           fmt::format("sent what no rank of this run sends: {}", handled.error().message));
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex_);
    Abort(ExceptionText(error));
  }
}

Status Pipeline::Handle(int from, const Message& message) {
  switch (message.kind) {
    case MessageKind::kTask:
      return OnTask(from, message);
    case MessageKind::kVersion:
      return OnVersion(from, message);
    case MessageKind::kLayer:
      return OnLayer(from, message);
    case MessageKind::kInvite:
      return OnInvite(from, message);
    case MessageKind::kAbort: {
      const std::lock_guard lock(mutex_);
      Fail(message.text);
      return {};
    }
    default:
      return IsFirstRank() ? HandleAsFirst(from, message) : HandleAsOther(from, message);
  }
}

Status Pipeline::HandleAsFirst(int from, const Message& message) {
  switch (message.kind) {
    case MessageKind::kFinished:
      return OnPartFinished(from, message);
    case MessageKind::kClock:
      return OnQuestion(from);
    case MessageKind::kCapture:
      return OnCapture(from, message);
    case MessageKind::kStop: {
      const std::lock_guard lock(mutex_);
      is_stop_requested_ = true;
      return {};
    }
    case MessageKind::kDone: {
      const std::lock_guard lock(mutex_);
      if (!over_ || done_[from]) return BadInput("an end that nobody asked for");
      done_[from] = true;
      ++ranks_done_;
      changed_.notify_all();
      return {};
    }
    default:
      return BadInput(fmt::format("a message of kind {}", static_cast<int>(message.kind)));
  }
}

Status Pipeline::HandleAsOther(int from, const Message& message) {
  if (from != 0) return BadInput(fmt::format("kind {}", static_cast<int>(message.kind)));
  const std::lock_guard lock(mutex_);
  switch (message.kind) {
    case MessageKind::kAdmitted:
      if (over_) return {};
      Admit(message.task.seq);
      WakeReadyStages();
      return {};
    case MessageKind::kClock:
      return OnAnswer(message);
    case MessageKind::kEnd: {
      ASSIGN_OR_RETURN(end_, DecodeRunEnd(message.text));
      over_ = true;
      WakeReadyStages();
      return {};
    }
    case MessageKind::kDone:
      options_.network->ExpectLeaving();
      may_leave_ = true;
      changed_.notify_all();
      return {};
    default:
      return BadInput(fmt::format("a message of kind {}", static_cast<int>(message.kind)));
  }
}

Status Pipeline::OnTask(int from, const Message& message) {
  ASSIGN_OR_RETURN(ArrivedTask arrived, link_->TakeTask(from, message));
  const Task& task = arrived.delivery.task;
  const std::lock_guard lock(mutex_);
  if (over_) return {};
  if (!scheduler_.Deliver(arrived.delivery, from)) return BadInput("a task out of turn");
  // Nobody takes it before the lock is free.
  transport_.Send(arrived.delivery.to, task, std::move(arrived.input));
  if (arrived.tied.tensor.defined()) {
    SubnetRun& subnet = subnets_[task.seq];
    const bool is_forward = task.kind == TaskKind::kForward;
    (is_forward ? subnet.embedding : subnet.tied_gradient) = std::move(arrived.tied);
  }
  WakeReadyStages();
  return {};
}

Status Pipeline::OnVersion(int from, const Message& message) {
  ASSIGN_OR_RETURN(ArrivedVersion arrived, link_->TakeVersion(from, message));
  const std::lock_guard lock(mutex_);
  if (over_) return {};
  if (!scheduler_.Deliver(arrived.delivery, from)) return BadInput("a version out of turn");
  const Layer& layer = experiment_.space.layer(arrived.delivery.layer);
  if (Moves(layer) && !mover_->Arrives(layer.id, arrived.delivery.task.seq)) {
    return BadInput("a version that is not awaited");
  }
  if (checkpoints_) checkpoints_->BeforeLeaving(arrived.delivery.version, layer);
  {
    const std::lock_guard delayed(delayed_layers_);
    Place(layer, std::move(arrived.layer), experiment_.layers[layer.id]);
  }
  if (Moves(layer)) mover_->HasCome(layer.id);
  WakeReadyStages();
  return {};
}

Status Pipeline::OnPartFinished(int from, const Message& message) {
  const std::int64_t seq = message.task.seq;
  ASSIGN_OR_RETURN(const RankReport report, DecodeReport(seq, message.text));
  {
    const std::lock_guard lock(mutex_);
    if (!subnets_.contains(seq) || !parts_finished_.insert({seq, from}).second) {
      return BadInput(fmt::format("a second report, or one of subnet {} too early or late", seq));
    }
  }
  if (options_.observer) Replay(seq, report, *options_.observer);
  const std::lock_guard lock(mutex_);
  if (report.loss) subnets_.at(seq).loss = *report.loss;
  versions_moved_[from] = report.versions_moved;
  bytes_moved_[from] = report.bytes_moved;
  bool is_finished = false;
  if (!scheduler_.PartFinished(seq, from, is_finished)) return BadInput("an end out of turn");
  if (!is_finished) return {};
  parts_finished_.erase(parts_finished_.lower_bound({seq, 0}),
                        parts_finished_.lower_bound({seq + 1, 0}));
  to_report_.push_back(seq);
  has_report_.notify_all();
  return {};
}

Status Pipeline::OnLayer(int from, const Message& message) {
  ASSIGN_OR_RETURN(ReceivedLayer received, link_->TakeWholeLayer(message));
  const std::lock_guard lock(mutex_);
  const bool is_expected =
      IsFirstRank() ? over_ && scheduler_.HolderOf(message.layer) == from : from == 0 && !end_;
  if (!is_expected) return BadInput("a layer that nobody asked for");
  experiment_.layers[message.layer] = std::move(received.state);
  if (mover_) mover_->HasCome(message.layer);
  return {};
}

Status Pipeline::OnCapture(int from, const Message& message) {
  ASSIGN_OR_RETURN(LayerState state, link_->TakeCapture(message));
  if (!checkpoints_) return BadInput("a layer for a checkpoint");
  const Layer& layer = experiment_.space.layer(message.layer);
  return checkpoints_->Receive(from, message.task.seq, layer, std::move(state));
}

Status Pipeline::OnInvite(int from, const Message& message) {
  const std::lock_guard lock(mutex_);
  if (!payloads_ || message.text.empty() || !invitations_[from].empty()) {
    return BadInput("an invitation to channels");
  }
  invitations_[from] = message.text;
  ++ranks_inviting_;
  changed_.notify_all();
  return {};
}

void Pipeline::AskForTime() {
  clock_offset_.Ask(RawNanoseconds());
  link_->Send(0, MessageKind::kClock);
}

Status Pipeline::OnQuestion(int from) {
  const std::lock_guard lock(mutex_);
  link_->Send(from, MessageKind::kClock, 0, std::to_string(Nanoseconds()));
  if (++questions_[from] == ClockOffset::kQuestions) ++ranks_asked_;
  changed_.notify_all();
  return {};
}

Status Pipeline::OnAnswer(const Message& message) {
  std::int64_t answer_ns = 0;
  const char* const end = message.text.data() + message.text.size();
  if (std::from_chars(message.text.data(), end, answer_ns).ptr != end) {
    return BadInput("a time that is no number");
  }
  if (clock_offset_.Answer(RawNanoseconds(), answer_ns)) AskForTime();
  return {};
}

void Pipeline::OnLost(const PeerName& peer, const std::string& why) {
  const std::lock_guard lock(mutex_);
  // At the end only rank 0 knows whether one of the others owes anything.
  if (may_leave_ || done_[peer.rank] || (end_ && peer.rank != 0)) return;
  Fail(fmt::format("{} {}", Describe(peer), why));
}

}  // namespace verbatim
