// Checkpoints of a running training, without draining it.
//
// A checkpoint at cut K is every layer as the subnets below K left it. While it is open, subnets
// from K on may be under way already: each layer is copied just before the first of them changes
// it, and the layers that none has changed by then once all subnets below K have finished. A layer
// without a delay is changed from a subnet's first forward on, which writes batch norm's running
// statistics; one with a delay by the update alone.
//
// It needs a causal schedule: a subnet's turn with a layer comes when all lower ones have left it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "base/status.h"
#include "supernet/search_space.h"
#include "trainer/checkpoint_settings.h"
#include "trainer/checkpoint_writer.h"
#include "trainer/layer_state.h"

namespace verbatim {

/// Thread-safe.
class CheckpointCapture {
 public:
  /// `first`: subnets below it have finished before. `settings` has a sink. References outlive it.
  CheckpointCapture(const SearchSpace& space, const OptimizerSpec& optimizer,
                    const std::vector<LayerState>& layers, const CheckpointSettings& settings,
                    std::int64_t first);

  /// Before a stage can learn of subnet `seq`; ascending, without gaps.
  void OnAdmitted(std::int64_t seq);

  /// Before subnet `seq` changes anything of a layer. Where no checkpoint is open that wants this,
  /// it costs one comparison. May wait for a copy, or for the disk.
  void BeforeChange(std::int64_t seq, const Layer& layer) {
    if (seq >= lowest_open_.load(std::memory_order_relaxed)) Capture(layer, seq);
  }

  /// Every task of the subnet is done, and the observer has been told. Returns the first error of
  /// the sink.
  Status OnFinished(std::int64_t seq);

  /// After the last task. Takes a checkpoint of what is there, if `at_end`: all subnets admitted
  /// have finished. Returns when everything is written. Nothing may be called after it.
  Status Close(bool at_end);

 private:
  void Open(std::int64_t cut);
  /// Gives the layer to all open checkpoints with a cut of `seq` or less that do not have it.
  void Capture(const Layer& layer, std::int64_t seq);
  /// The lock is held.
  bool IsWanted(const Layer& layer, std::int64_t seq) const;
  /// Captures what is left of every checkpoint whose subnets have all finished, and hands it over.
  void CompleteUpTo(std::int64_t watermark);
  std::shared_ptr<CapturedLayer> Copy(const Layer& layer) const;

  const SearchSpace& space_;
  const std::vector<LayerState>& layers_;
  const CheckpointSettings& settings_;
  CheckpointWriter writer_;

  static constexpr std::int64_t kNone = INT64_MAX;
  /// Written under the lock. A stage that executes a subnet of an open cut or above sees it: the
  /// cut was opened before the subnet was admitted.
  std::atomic<std::int64_t> lowest_open_{kNone};

  std::mutex mutex_;
  std::condition_variable copied_;
  std::deque<CapturedCheckpoint> open_;               ///< ascending cut; null: not captured yet
  std::vector<bool> is_copying_;                      ///< by layer
  std::vector<std::shared_ptr<CapturedLayer>> last_;  ///< by layer: its newest copy, or null
  std::set<std::int64_t> finished_;                   ///< above the watermark
  std::int64_t watermark_;                            ///< all subnets below have finished
  std::int64_t last_cut_;

  std::mutex completing_;  ///< one thread completes at a time; taken before the other
};

}  // namespace verbatim
