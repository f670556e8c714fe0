// Checkpoints of a running training, without draining it.
//
// A checkpoint at cut K is every layer as the subnets below K left it. While it is open, subnets
// from K on may be under way already: each layer is copied just before the first of them changes
// it, and the layers that none has changed by then once all subnets below K have finished. A layer
// without a delay is changed from a subnet's first forward on, which writes batch norm's running
// statistics; one with a delay by the update alone.
//
// It needs a causal schedule: a subnet's turn with a layer comes when all lower ones have left it.
//
// On several ranks each captures what it holds: where the last subnet below the cut that uses a
// layer has its use of it, there the layer is as those subnets leave it. All ranks know that when
// they hear of the admission of subnet K, before it or a later one can take a layer away. Layers
// that no subnet has used are rank 0's, which writes what the others send it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/status.h"
#include "supernet/search_space.h"
#include "trainer/checkpoint_settings.h"
#include "trainer/checkpoint_writer.h"
#include "trainer/layer_state.h"

namespace verbatim {

/// One rank's part in the checkpoints of a run on several, and how it comes to its layers.
struct CaptureRole {
  int rank = 0;
  /// The rank that has a layer's last use by a subnet admitted so far; -1: none has.
  std::function<int(int layer)> holder_of;
  /// Not on rank 0: sends a layer of the checkpoint at `cut` there. Its state has no tensors where
  /// the one sent before is of the same version. Called with a lock held; does not wait.
  std::function<void(std::int64_t cut, const CapturedLayer& layer)> send;
  std::mutex* delayed_layers = nullptr;  ///< guards the states of layers with a delay
  /// Where layers may move between memories meanwhile: a state with the tensors that it has now.
  std::function<LayerState(int layer)> snapshot;
};

/// Thread-safe.
class CheckpointCapture {
 public:
  /// `first`: subnets below it have finished before. `settings` has a sink, but on a rank other
  /// than 0. References outlive it. Without a role, the whole run is in one process.
  CheckpointCapture(const SearchSpace& space, const OptimizerSpec& optimizer,
                    const std::vector<LayerState>& layers, const CheckpointSettings& settings,
                    std::int64_t first, CaptureRole role = {});

  /// Before a stage can learn of subnet `seq`, and before any rank knows where it uses what;
  /// ascending, without gaps.
  void OnAdmitted(std::int64_t seq);

  /// Before subnet `seq` changes anything of a layer. Where no checkpoint is open that wants this,
  /// it costs one comparison. May wait for a copy, or for the disk.
  void BeforeChange(std::int64_t seq, const Layer& layer) {
    if (seq >= lowest_open_.load(std::memory_order_relaxed)) Capture(layer, seq, Means::kCopy);
  }
  /// Before the tensors of a layer, which nobody changes any more, go to another rank for subnet
  /// `seq`, or those that subnet `seq` wrote come from one in their place. Waits for no disk.
  void BeforeLeaving(std::int64_t seq, const Layer& layer) {
    if (seq >= lowest_open_.load(std::memory_order_relaxed)) Capture(layer, seq, Means::kShare);
  }

  /// Every task of the subnet is done, and the observer has been told; on a rank other than 0: its
  /// own tasks, and rank 0 has not been told. Returns the first error of the sink. Waits for the
  /// disk where too much is to be written.
  Status OnFinished(std::int64_t seq);

  /// Rank 0: rank `from` has sent a layer of the checkpoint at `cut`, before it told that it has
  /// finished all subnets below. kBadInput where none is expected.
  Status Receive(int from, std::int64_t cut, const Layer& layer, LayerState state);

  /// After the last task. Takes a checkpoint of what is there, if `at_end`: all subnets admitted
  /// have finished. Returns when everything is written. Nothing may be called after it.
  Status Close(bool at_end);

 private:
  enum class Means { kCopy, kShare };
  /// A checkpoint, and what of it other ranks have.
  struct OpenCheckpoint {
    CapturedCheckpoint checkpoint;
    std::vector<bool> is_elsewhere;  ///< by layer; empty: all is here

    bool Wants(int layer, std::int64_t seq) const {
      return checkpoint.cut <= seq && !checkpoint.layers[layer] &&
             (is_elsewhere.empty() || !is_elsewhere[layer]);
    }
  };

  void Open(std::int64_t cut, std::vector<bool> is_elsewhere);
  /// What the ranks hold now, seen from this one.
  std::vector<bool> Elsewhere() const;
  /// Gives the layer to all open checkpoints with a cut of `seq` or less that want it.
  void Capture(const Layer& layer, std::int64_t seq, Means means);
  std::shared_ptr<CapturedLayer> TakeUnlocked(const Layer& layer, Means means,
                                              std::unique_lock<std::mutex>& lock);
  void Give(const std::shared_ptr<CapturedLayer>& captured, std::int64_t seq);
  /// Captures what is left of every checkpoint whose subnets have all finished, and hands it over.
  Status CompleteUpTo(std::int64_t watermark);
  std::shared_ptr<CapturedLayer> Take(const Layer& layer, Means means) const;

  const SearchSpace& space_;
  const std::vector<LayerState>& layers_;
  const CheckpointSettings& settings_;
  const CaptureRole role_;
  std::optional<CheckpointWriter> writer_;  ///< of rank 0

  static constexpr std::int64_t kNone = INT64_MAX;
  /// Written under the lock. A stage that executes a subnet of an open cut or above sees it: the
  /// cut was opened before the subnet was admitted.
  std::atomic<std::int64_t> lowest_open_{kNone};

  std::mutex mutex_;
  std::condition_variable copied_;
  std::deque<OpenCheckpoint> open_;                   ///< ascending cut; null: not captured yet
  std::vector<bool> is_copying_;                      ///< by layer
  std::vector<std::shared_ptr<CapturedLayer>> last_;  ///< by layer: its newest copy, or null
  /// Rank 0: by rank and layer, what that rank has sent last.
  std::map<std::pair<int, int>, std::shared_ptr<CapturedLayer>> received_;
  std::set<std::int64_t> finished_;  ///< above the watermark
  std::int64_t watermark_;           ///< all subnets below have finished
  std::int64_t last_cut_;

  std::mutex completing_;  ///< one thread completes at a time; taken before the other
};

}  // namespace verbatim
