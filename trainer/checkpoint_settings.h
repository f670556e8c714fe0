// When a training takes checkpoints, and where they go.
#pragma once

#include <cstdint>
#include <optional>

#include "recorder/checkpoint_sink.h"
#include "store/record.h"

namespace verbatim {

/// Nothing here changes a bit of a run.
struct CheckpointSettings {
  CheckpointSink* sink = nullptr;  ///< null: none are taken
  /// One at every multiple of this, and one at the end; 0: only at the end.
  std::int64_t every = 0;
  /// Copies of layers that wait to be written; a stage that adds more waits for room.
  std::int64_t bytes_in_flight_max = std::int64_t{256} << 20;
  /// The checkpoint that the experiment's layers were loaded from: layers that did not change
  /// since keep their files.
  std::optional<CheckpointRow> previous;
};

}  // namespace verbatim
