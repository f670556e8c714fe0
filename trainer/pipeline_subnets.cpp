// From the admission of a subnet to its report.
#include <fmt/format.h>

#include <cmath>
#include <mutex>
#include <utility>

#include "trainer/pipeline.h"

namespace verbatim {

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

}  // namespace verbatim
