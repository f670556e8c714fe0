#include "trainer/checkpoint_capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "base/check.h"
#include "trainer/layer_file.h"

namespace verbatim {

CheckpointCapture::CheckpointCapture(const SearchSpace& space, const OptimizerSpec& optimizer,
                                     const std::vector<LayerState>& layers,
                                     const CheckpointSettings& settings, std::int64_t first,
                                     CaptureRole role)
    : space_(space),
      layers_(layers),
      settings_(settings),
      role_(std::move(role)),
      is_copying_(layers.size()),
      last_(layers.size()),
      watermark_(first),
      last_cut_(first) {
  if (role_.rank == 0) writer_.emplace(*settings.sink, optimizer, settings.bytes_in_flight_max);
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
  if (settings_.every > 0 && seq % settings_.every == 0) Open(seq, Elsewhere());
}

std::vector<bool> CheckpointCapture::Elsewhere() const {
  std::vector<bool> is_elsewhere;
  if (!role_.holder_of) return is_elsewhere;
  for (const Layer& layer : space_.layers()) {
    is_elsewhere.push_back(std::max(role_.holder_of(layer.id), 0) != role_.rank);
  }
  return is_elsewhere;
}

void CheckpointCapture::Open(std::int64_t cut, std::vector<bool> is_elsewhere) {
  const std::lock_guard lock(mutex_);
  // What lies before the first subnet is known without a checkpoint.
  if (cut == last_cut_) return;
  last_cut_ = cut;
  open_.push_back({{cut, std::vector<std::shared_ptr<CapturedLayer>>(layers_.size())},
                   std::move(is_elsewhere)});
  lowest_open_ = open_.front().checkpoint.cut;
}

Status CheckpointCapture::OnFinished(std::int64_t seq) {
  std::int64_t watermark = 0;
  {
    const std::lock_guard lock(mutex_);
    finished_.insert(seq);
    while (finished_.erase(watermark_) > 0) ++watermark_;
    watermark = watermark_;
  }
  if (watermark >= lowest_open_) RETURN_IF_ERROR(CompleteUpTo(watermark));
  // What other ranks send waits for no room: it is bounded by the subnets that are admitted, and
  // none is before one has finished here.
  return writer_ ? writer_->WaitForRoom() : Status{};
}

Status CheckpointCapture::Receive(int from, std::int64_t cut, const Layer& layer,
                                  LayerState state) {
  auto captured = std::make_shared<CapturedLayer>();
  captured->layer = &layer;
  captured->state = std::move(state);
  captured->bytes = static_cast<std::int64_t>(BytesOf(captured->state));
  const bool is_new = !captured->state.parameters.empty();
  {
    const std::lock_guard lock(mutex_);
    const auto open = std::ranges::find_if(
        open_, [&](const OpenCheckpoint& other) { return other.checkpoint.cut == cut; });
    if (open == open_.end() || open->is_elsewhere.empty() || !open->is_elsewhere[layer.id] ||
        open->checkpoint.layers[layer.id]) {
      return BadInput(fmt::format("layer {} for a checkpoint at {}", layer.name, cut));
    }
    std::shared_ptr<CapturedLayer>& sent = received_[{from, layer.id}];
    if (!is_new && (!sent || sent->state.version != captured->state.version)) {
      return BadInput(fmt::format("no tensors of layer {} at {}", layer.name, cut));
    }
    if (is_new) sent = captured;
    open->checkpoint.layers[layer.id] = sent;
    std::shared_ptr<CapturedLayer>& last = last_[layer.id];
    if (!last || last->state.version < sent->state.version) last = sent;
  }
  if (is_new) writer_->Add(std::move(captured), /*waits=*/false);
  return {};
}

Status CheckpointCapture::Close(bool at_end) {
  Status completed;
  if (at_end && writer_) {
    Open(watermark_, {});
    completed = CompleteUpTo(watermark_);
  }
  const Status closed = writer_ ? writer_->Close() : Status{};
  return completed ? closed : completed;
}

void CheckpointCapture::Capture(const Layer& layer, std::int64_t seq, Means means) {
  std::unique_lock lock(mutex_);
  copied_.wait(lock, [&] { return !is_copying_[layer.id]; });
  const auto wants = [&](const OpenCheckpoint& open) { return open.Wants(layer.id, seq); };
  if (std::ranges::none_of(open_, wants)) return;
  std::shared_ptr<CapturedLayer> captured = last_[layer.id];
  const bool is_new = !captured || captured->state.version != layers_[layer.id].version;
  if (is_new) {
    captured = means == Means::kShare ? Take(layer, means) : TakeUnlocked(layer, means, lock);
    last_[layer.id] = captured;
  }
  Give(captured, seq);
  lock.unlock();
  if (is_new && writer_) writer_->Add(std::move(captured), /*waits=*/means == Means::kCopy);
}

std::shared_ptr<CapturedLayer> CheckpointCapture::TakeUnlocked(const Layer& layer, Means means,
                                                               std::unique_lock<std::mutex>& lock) {
  // Others may use the lock meanwhile, and whoever would change this layer waits above.
  is_copying_[layer.id] = true;
  lock.unlock();
  std::shared_ptr<CapturedLayer> captured;
  std::exception_ptr failure;
  try {
    captured = Take(layer, means);
  } catch (...) {
    failure = std::current_exception();
  }
  lock.lock();
  is_copying_[layer.id] = false;
  copied_.notify_all();
  if (failure) std::rethrow_exception(failure);
  return captured;
}

void CheckpointCapture::Give(const std::shared_ptr<CapturedLayer>& captured, std::int64_t seq) {
  const int layer = captured->layer->id;
  for (OpenCheckpoint& open : open_) {
    if (!open.Wants(layer, seq)) continue;
    open.checkpoint.layers[layer] = captured;
    if (writer_) continue;
    // Under the lock, so that rank 0 has it before it hears that all of its subnets are finished.
    role_.send(open.checkpoint.cut, *captured);
    DropTensors(captured->state);
  }
}

Status CheckpointCapture::CompleteUpTo(std::int64_t watermark) {
  const std::lock_guard one_at_a_time(completing_);
  while (lowest_open_ <= watermark) {
    const std::int64_t cut = lowest_open_;
    for (const Layer& layer : space_.layers()) Capture(layer, cut, Means::kCopy);
    const std::lock_guard lock(mutex_);
    CapturedCheckpoint& done = open_.front().checkpoint;
    if (writer_) {
      if (std::ranges::count(done.layers, nullptr) > 0) {
        return Failed(fmt::format("a rank has kept a layer of the checkpoint at {} back", cut));
      }
      writer_->Finish(std::move(done));
    }
    open_.pop_front();
    lowest_open_ = open_.empty() ? kNone : open_.front().checkpoint.cut;
  }
  return {};
}

std::shared_ptr<CapturedLayer> CheckpointCapture::Take(const Layer& layer, Means means) const {
  std::unique_lock<std::mutex> lock;
  if (role_.delayed_layers && layer.delay > 0) lock = std::unique_lock(*role_.delayed_layers);
  const LayerState moving = role_.snapshot ? role_.snapshot(layer.id) : LayerState{};
  const LayerState& state = role_.snapshot ? moving : layers_[layer.id];
  auto captured = std::make_shared<CapturedLayer>();
  captured->layer = &layer;
  captured->state = means == Means::kShare ? ShareOnHost(state) : CopyToHost(layer, state);
  captured->bytes = static_cast<std::int64_t>(BytesOf(captured->state));
  return captured;
}

}  // namespace verbatim
