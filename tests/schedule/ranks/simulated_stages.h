// The stages of one rank of a simulated run: what the trainer does with tensors, on hashes, each
// access held against the sequential reference.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schedule/rank_scheduler.h"
#include "tests/schedule/ranks/computed_layers.h"
#include "tests/schedule/ranks/held_layers.h"
#include "tests/schedule/ranks/rank_case.h"

namespace verbatim::ranks_test {

/// What a delivery carries.
struct Cargo {
  Hash input = 0;         ///< of a task
  LayerVersion version;   ///< of a layer
  bool is_whole = false;  ///< its state, and not its weights alone
};

class SimulatedStages {
 public:
  /// `differs` is told what the sequential reference would not have done. References must outlive
  /// it.
  SimulatedStages(const RankCase& drawn, const SequentialReference& reference, int rank,
                  std::function<void(std::string what)> differs)
      : drawn_(drawn),
        reference_(reference),
        rank_(rank),
        differs_(std::move(differs)),
        layers_(*drawn.space) {}

  void Open(std::int64_t seq, const StageRanges& ranges) {
    const Choices choices = ChoicesOf(drawn_, seq);
    for (int stage = drawn_.placement.Begin(rank_); stage < drawn_.placement.End(rank_); ++stage) {
      std::vector<const Layer*> layers;
      for (int position = ranges.Begin(stage); position < ranges.End(stage); ++position) {
        layers.push_back(&drawn_.space->LayerAt(position, choices));
      }
      open_.emplace(std::pair(stage, seq), OpenPart{ComputedPart(std::move(layers))});
    }
    for (std::int32_t m = 0; rank_ == 0 && m < drawn_.options.microbatches; ++m) {
      inputs_[{0, {TaskKind::kForward, seq, m}}] = BatchHash(seq, m);
    }
  }

  /// Takes the versions that a first forward reads.
  void Begin(int stage, const Task& task) {
    if (task.kind != TaskKind::kForward) return;
    OpenPart& open = open_.at({stage, task.seq});
    Check(task.microbatch == open.next_forward++, "micro-batches out of order");
    if (task.microbatch > 0) return;
    for (std::size_t i = 0; i < open.computed.size(); ++i) {
      const Layer& layer = open.computed.layer(i);
      if (!layer.IsVersioned()) continue;
      const std::optional<LayerVersion> read = layers_.Read(layer, task.seq);
      const bool is_expected = read && *read == reference_.Access(task.seq, layer.id).read;
      Check(is_expected, fmt::format("subnet {} reads layer {}: version {}", task.seq, layer.id,
                                     read ? read->seq : -2));
      if (read) open.computed.SetRead(i, *read);
    }
  }

  void Execute(int stage, const Task& task) {
    if (task.kind == TaskKind::kUpdate) return Update(stage, task.seq);
    ComputedPart& part = open_.at({stage, task.seq}).computed;
    const Hash input = inputs_.extract({stage, task}).mapped();
    const std::int32_t m = task.microbatch;
    if (task.kind == TaskKind::kBackward) {
      const Hash gradient = part.Backward(m, input);
      if (stage > 0) inputs_[{stage - 1, task}] = gradient;
      return;
    }
    const Hash output = part.Forward(m, input);
    if (stage < drawn_.placement.stages() - 1) {
      inputs_[{stage + 1, task}] = output;
    } else {
      losses_[task.seq] = Mix(losses_[task.seq], output);
      inputs_[{stage, {TaskKind::kBackward, task.seq, m}}] = output;
    }
  }

  Cargo Load(const Delivery& delivery) {
    if (delivery.kind == Delivery::Kind::kTask) {
      return {.input = inputs_.extract({delivery.to, delivery.task}).mapped()};
    }
    const Layer& layer = drawn_.space->layer(delivery.layer);
    const auto version = layers_.Send(layer, delivery.version, delivery.is_base);
    Check(version.has_value(), fmt::format("has no layer {} to send", layer.id));
    return {.version = version.value_or(LayerVersion{}), .is_whole = delivery.is_base};
  }

  void Place(const Delivery& delivery, const Cargo& cargo) {
    if (delivery.kind == Delivery::Kind::kTask) {
      inputs_[{delivery.to, delivery.task}] = cargo.input;
    } else {
      const Layer& layer = drawn_.space->layer(delivery.layer);
      layers_.Place(layer, cargo.version, delivery.task.seq, cargo.is_whole);
      CheckMemory(layer);
    }
  }

  /// Of a subnet that this rank has done, if it hosts the last stage; else 0.
  Hash TakeLoss(std::int64_t seq) {
    const auto loss = losses_.extract(seq);
    return loss.empty() ? 0 : loss.mapped();
  }

  std::optional<LayerVersion> State(int layer) const { return layers_.State(layer); }
  std::int64_t accesses() const { return accesses_; }

 private:
  struct OpenPart {
    ComputedPart computed;
    std::int32_t next_forward = 0;
  };
  struct InputOrder {
    bool operator()(const std::pair<int, Task>& a, const std::pair<int, Task>& b) const {
      return a.first != b.first ? a.first < b.first : TaskOrder()(a.second, b.second);
    }
  };

  void Check(bool holds, const std::string& what) const {
    if (!holds) differs_(what);
  }
  /// What may still be read: the window of the delay, what is in flight, and one older version.
  void CheckMemory(const Layer& layer) const {
    Check(layers_.Kept(layer.id) <= layer.delay + drawn_.options.in_flight_max + 1,
          fmt::format("layer {}: {} versions kept", layer.id, layers_.Kept(layer.id)));
  }

  void Update(int stage, std::int64_t seq) {
    const ComputedPart part = open_.extract({stage, seq}).mapped().computed;
    for (std::size_t i = 0; i < part.size(); ++i) {
      const Layer& layer = part.layer(i);
      if (!layer.IsVersioned()) continue;
      const ExpectedAccess& expected = reference_.Access(seq, layer.id);
      const std::optional<LayerVersion> base = layers_.State(layer.id);
      Check(base && *base == expected.base, fmt::format("subnet {} updates layer {}: version {}",
                                                        seq, layer.id, base ? base->seq : -2));
      const LayerVersion left = part.Updated(i, seq, base.value_or(LayerVersion{}));
      Check(left == expected.left, fmt::format("subnet {} leaves layer {}", seq, layer.id));
      layers_.Write(layer, left);
      CheckMemory(layer);
      ++accesses_;
    }
  }

  const RankCase& drawn_;
  const SequentialReference& reference_;
  const int rank_;
  const std::function<void(std::string what)> differs_;
  HeldLayers layers_;
  std::map<std::pair<int, std::int64_t>, OpenPart> open_;    ///< by stage and seq
  std::map<std::pair<int, Task>, Hash, InputOrder> inputs_;  ///< of tasks, by stage
  std::map<std::int64_t, Hash> losses_;                      ///< by seq, as far as computed
  std::int64_t accesses_ = 0;
};

}  // namespace verbatim::ranks_test
