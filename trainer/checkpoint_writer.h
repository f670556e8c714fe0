// The thread that writes checkpoints while the stages go on.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/status.h"
#include "recorder/checkpoint_sink.h"
#include "trainer/layer_state.h"

namespace verbatim {

/// One version of a layer, as several checkpoints may share it.
struct CapturedLayer {
  const Layer* layer = nullptr;
  LayerState state;             ///< on the CPU; the tensors go once they are written
  std::int64_t bytes = 0;       ///< of the tensors
  std::optional<Hash256> file;  ///< once written; the writer thread's
};

/// All layers as the subnets below `cut` left them; by layer id.
struct CapturedCheckpoint {
  std::int64_t cut = 0;
  std::vector<std::shared_ptr<CapturedLayer>> layers;
};

/// Thread-safe. Layers are written in the order in which they come, a checkpoint after all of its
/// layers. Once the sink has failed, nothing more is written, and nobody waits.
class CheckpointWriter {
 public:
  /// `bytes_max`: of layers that wait to be written; at least one layer always may. References
  /// outlive it.
  CheckpointWriter(CheckpointSink& sink, const OptimizerSpec& optimizer, std::int64_t bytes_max);
  /// Drops what is not written yet, unless Close was called.
  ~CheckpointWriter();

  /// Takes a layer to be written; returns when there is room for another, or, where it does not
  /// wait for that, at once.
  void Add(std::shared_ptr<CapturedLayer> layer, bool waits = true);
  /// Waits until as much is written that a layer could be added; the first error so far.
  Status WaitForRoom();
  /// Takes a checkpoint whose layers are all captured. Never waits.
  void Finish(CapturedCheckpoint checkpoint);
  /// The first error so far.
  Status status() const;
  /// Waits until all is written, and returns the first error. Nothing may be called after it.
  Status Close();

 private:
  /// A layer, or, where that is null, a checkpoint.
  struct Job {
    std::shared_ptr<CapturedLayer> layer;
    CapturedCheckpoint checkpoint;
  };

  void WriteUntilStopped();
  std::optional<Job> NextJob();
  Status Write(Job& job);
  Status WriteLayer(CapturedLayer& layer);
  void Fail(const Error& error);
  void Stop();

  CheckpointSink& sink_;
  const OptimizerSpec& optimizer_;
  const std::int64_t bytes_max_;

  mutable std::mutex mutex_;
  std::condition_variable has_room_;  ///< or has failed
  std::condition_variable has_work_;  ///< or is stopping
  std::deque<Job> jobs_;
  std::int64_t bytes_ = 0;  ///< of the layers in `jobs_` and the one being written
  bool is_stopping_ = false;
  std::optional<Error> error_;

  std::thread thread_;  ///< last, so that it starts when all else stands
};

}  // namespace verbatim
