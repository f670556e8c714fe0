#include "trainer/checkpoint_capture.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/check.h"
#include "trainer/layer_file.h"

namespace verbatim {

CheckpointCapture::CheckpointCapture(const SearchSpace& space, const OptimizerSpec& optimizer,
                                     const std::vector<LayerState>& layers,
                                     const CheckpointSettings& settings, std::int64_t first)
    : space_(space),
      layers_(layers),
      settings_(settings),
      writer_(*settings.sink, optimizer, settings.bytes_in_flight_max),
      is_copying_(layers.size()),
      last_(layers.size()),
      watermark_(first),
      last_cut_(first) {
  if (!settings.previous) return;
  VERBATIM_CHECK(settings.previous->layers.size() == layers.size());
  for (std::size_t id = 0; id < layers.size(); ++id) {
    const CheckpointLayer& written = settings.previous->layers[id];
    last_[id] = std::make_shared<CapturedLayer>();
    last_[id]->layer = &space.layers()[id];
    last_[id]->state.version = written.version;
    last_[id]->file = written.file;
  }
}

void CheckpointCapture::OnAdmitted(std::int64_t seq) {
  if (settings_.every > 0 && seq % settings_.every == 0) Open(seq);
}

void CheckpointCapture::Open(std::int64_t cut) {
  const std::lock_guard lock(mutex_);
  // What lies before the first subnet is known without a checkpoint.
  if (cut == last_cut_) return;
  last_cut_ = cut;
  open_.push_back({cut, std::vector<std::shared_ptr<CapturedLayer>>(layers_.size())});
  lowest_open_ = open_.front().cut;
}

Status CheckpointCapture::OnFinished(std::int64_t seq) {
  std::int64_t watermark = 0;
  {
    const std::lock_guard lock(mutex_);
    finished_.insert(seq);
    while (finished_.erase(watermark_) > 0) ++watermark_;
    watermark = watermark_;
  }
  if (watermark >= lowest_open_) CompleteUpTo(watermark);
  return writer_.status();
}

Status CheckpointCapture::Close(bool at_end) {
  if (at_end) {
    Open(watermark_);
    CompleteUpTo(watermark_);
  }
  return writer_.Close();
}

void CheckpointCapture::Capture(const Layer& layer, std::int64_t seq) {
  std::unique_lock lock(mutex_);
  copied_.wait(lock, [&] { return !is_copying_[layer.id]; });
  if (!IsWanted(layer, seq)) return;
  std::shared_ptr<CapturedLayer> captured = last_[layer.id];
  const bool is_new = !captured || captured->state.version != layers_[layer.id].version;
  if (is_new) {
    // Others may use the lock meanwhile, and whoever would change this layer waits above.
    is_copying_[layer.id] = true;
    lock.unlock();
    std::exception_ptr failure;
    try {
      captured = Copy(layer);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    is_copying_[layer.id] = false;
    copied_.notify_all();
    if (failure) std::rethrow_exception(failure);
    last_[layer.id] = captured;
  }
  for (CapturedCheckpoint& checkpoint : open_) {
    if (checkpoint.cut > seq) break;
    if (!checkpoint.layers[layer.id]) checkpoint.layers[layer.id] = captured;
  }
  lock.unlock();
  if (is_new) writer_.Add(std::move(captured));
}

bool CheckpointCapture::IsWanted(const Layer& layer, std::int64_t seq) const {
  return std::any_of(open_.begin(), open_.end(), [&](const CapturedCheckpoint& checkpoint) {
    return checkpoint.cut <= seq && !checkpoint.layers[layer.id];
  });
}

void CheckpointCapture::CompleteUpTo(std::int64_t watermark) {
  const std::lock_guard one_at_a_time(completing_);
  while (lowest_open_ <= watermark) {
    const std::int64_t cut = lowest_open_;
    for (const Layer& layer : space_.layers()) Capture(layer, cut);
    const std::lock_guard lock(mutex_);
    writer_.Finish(std::move(open_.front()));
    open_.pop_front();
    lowest_open_ = open_.empty() ? kNone : open_.front().cut;
  }
}

std::shared_ptr<CapturedLayer> CheckpointCapture::Copy(const Layer& layer) const {
  auto captured = std::make_shared<CapturedLayer>();
  captured->layer = &layer;
  captured->state = CopyToHost(layer, layers_[layer.id]);
  captured->bytes = static_cast<std::int64_t>(BytesOf(captured->state));
  return captured;
}

}  // namespace verbatim
