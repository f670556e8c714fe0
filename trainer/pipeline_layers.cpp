// Where layers are while a run begins, goes on and ends.
#include <algorithm>
#include <exception>
#include <mutex>

#include "base/exception_text.h"
#include "trainer/layer_handover.h"
#include "trainer/pipeline.h"

namespace verbatim {
namespace {

/// How many subnets ahead of admission the mover is told of, at least: enough to see the next use
/// of most layers that a stage could keep.
constexpr std::int64_t kForeseen = 64;

}  // namespace

void Pipeline::StartMover() {
  const std::lock_guard lock(mutex_);
  mover_->Start();
  WakeReadyStages();
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

void Pipeline::SettleDevices() {
  try {
    for (const at::Device device : experiment_.devices) SynchronizeDevice(device);
    BringHome(experiment_.layers, experiment_.home);
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex_);
    Abort(ExceptionText(error));
  }
}

}  // namespace verbatim
