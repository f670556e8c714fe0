#include "trainer/layer_mover.h"

#include <ATen/Parallel.h>

#include <utility>

namespace verbatim {
namespace {

/// For layers without a delay, by stage.
std::vector<StageRoom> RoomsOf(const SearchSpace& space, std::span<const LayerBytes> bytes,
                               const LayerMoverOptions& options) {
  std::vector<StageRoom> rooms(static_cast<std::size_t>(options.stages));
  for (int stage = options.part.begin; stage < options.part.end; ++stage) {
    const std::int64_t permanent = PermanentBytes(space, bytes, stage, options.stages);
    rooms[stage] = {options.devices.Of(stage), options.budget_bytes - permanent};
  }
  return rooms;
}

}  // namespace

LayerMover::LayerMover(const SearchSpace& space, std::vector<LayerState>& layers,
                       const LayerMoverOptions& options, std::mutex& mutex,
                       std::function<void()> on_moved, OnFailure on_failure)
    : options_(options),
      mutex_(mutex),
      on_moved_(std::move(on_moved)),
      on_failure_(std::move(on_failure)),
      copies_(space, layers, RoomsOf(space, BytesOfLayers(layers), options)),
      cache_(space, BytesOfLayers(layers), options.stages, options.part,
             {.budget_bytes = options.budget_bytes}) {}

LayerMover::~LayerMover() {
  Stop();
}

void LayerMover::Start() {
  for (int stage = options_.part.begin; stage < options_.part.end; ++stage) {
    for (const Transfer::Kind kind : {Transfer::Kind::kLoad, Transfer::Kind::kWriteBack}) {
      auto stream = options_.open_stream(options_.devices.Of(stage));
      Engine& engine =
          *engines_.emplace_back(new Engine{stage, kind, std::move(stream), {}, {}, {}});
      engine.thread = std::thread([this, &engine] { Serve(engine); });
    }
  }
}

void LayerMover::Stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
    for (const auto& engine : engines_) engine->wake.notify_one();
  }
  for (const auto& engine : engines_) {
    if (engine->thread.joinable()) engine->thread.join();
  }
}

void LayerMover::Foresee(std::int64_t seq, std::span<const std::uint16_t> choices,
                         const StageRanges& ranges) {
  cache_.Foresee(seq, choices, ranges);
}

std::vector<Residency> LayerMover::TakeResident() {
  return std::exchange(resident_, {});
}

bool LayerMover::Release(int layer) {
  if (!cache_.IsAtHome(layer)) return false;
  if (const auto copy = cache_.Left(layer)) copies_.GiveUp(*copy);
  return true;
}

void LayerMover::Dispatch() {
  for (const auto& engine : engines_) {
    if (engine->transfer) continue;
    engine->transfer = cache_.Next(engine->stage, engine->kind);
    if (!engine->transfer) continue;
    // At once: what is loaded elsewhere from now on may count on their room.
    for (const LayerCopy& copy : engine->transfer->dropped) copies_.GiveUp(copy);
    engine->wake.notify_one();
  }
}

bool LayerMover::Settle(Lock& lock) {
  cache_.Settle();
  Dispatch();
  settled_.wait(lock, [this] { return has_failed_ || cache_.IsSettled(); });
  if (has_failed_) return false;
  for (const LayerCopy& copy : cache_.DropAll()) copies_.GiveUp(copy);
  return true;
}

void LayerMover::Serve(Engine& engine) {
  try {
    at::set_num_threads(1);
    engine.stream->Enter();
    CopyUntilStopped(engine);
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex_);
    has_failed_ = true;
    on_failure_(engine.stage, engine.kind, error);
    settled_.notify_all();
  }
}

void LayerMover::CopyUntilStopped(Engine& engine) {
  Lock lock(mutex_);
  while (true) {
    engine.wake.wait(lock, [&] { return is_stopping_ || engine.transfer; });
    if (is_stopping_) return;
    const Transfer transfer = *engine.transfer;
    lock.unlock();
    Copy(transfer, *engine.stream);
    lock.lock();
    engine.transfer.reset();
    cache_.Finished(transfer, resident_);
    on_moved_();
    Dispatch();
    settled_.notify_all();
  }
}

void LayerMover::Copy(const Transfer& transfer, DeviceStream& stream) {
  if (options_.probe) options_.probe->BeforeTransfer(transfer);
  stream.WaitFor(copies_.SourceOf(transfer));
  if (options_.probe) options_.probe->OnTransfer(transfer);
  const bool is_load = transfer.kind == Transfer::Kind::kLoad;
  Synchronize(is_load ? copies_.Load(transfer.stage, transfer.layer, stream)
                      : copies_.WriteBack(transfer.stage, transfer.layer, stream));
}

}  // namespace verbatim
