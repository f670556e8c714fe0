// Where a trainer's checkpoints go. The only interface between a trainer and whatever keeps them.
//
// Calls come from one thread, none of a stage's: they may take their time.
#pragma once

#include "base/hash256.h"
#include "base/status.h"
#include "store/record.h"
#include "store/safetensors.h"

namespace verbatim {

class CheckpointSink {
 public:
  virtual ~CheckpointSink() = default;

  /// Keeps one version of a layer and says by which name. An error stops the training.
  virtual Result<Hash256> WriteLayer(const EncodedTensors& tensors) = 0;
  /// All layers of this one were written. `created_utc` is the sink's to fill in. Returns once the
  /// checkpoint can be relied on. An error stops the training.
  virtual Status WriteCheckpoint(CheckpointRow checkpoint) = 0;
};

}  // namespace verbatim
