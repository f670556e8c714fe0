// Keeps a training's checkpoints: layers as files beside the record, and a row in the record for
// each checkpoint once all of its files are on the disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "base/status.h"
#include "recorder/checkpoint_sink.h"
#include "recorder/recorder.h"
#include "store/checkpoint_files.h"

namespace verbatim {

/// One thread at a time.
class RecordedCheckpoints : public CheckpointSink {
 public:
  /// Prepares the folder of `record`. `keep`: how many checkpoints stay, the newest, 1 or more.
  /// `rows`: those that the record has already. `recorder` outlives it.
  static Result<std::unique_ptr<RecordedCheckpoints>> Open(const std::filesystem::path& record,
                                                           Recorder& recorder, std::int64_t keep,
                                                           std::vector<CheckpointRow> rows = {});

  Result<Hash256> WriteLayer(const EncodedTensors& tensors) override;
  /// Commits the row, and then removes the files that only older checkpoints named.
  Status WriteCheckpoint(CheckpointRow checkpoint) override;

  /// Those in the record, by ascending cut.
  const std::vector<CheckpointRow>& rows() const { return rows_; }

 private:
  RecordedCheckpoints(CheckpointFiles files, Recorder& recorder, std::int64_t keep,
                      std::vector<CheckpointRow> rows)
      : files_(std::move(files)), recorder_(recorder), keep_(keep), rows_(std::move(rows)) {}

  CheckpointFiles files_;
  Recorder& recorder_;
  const std::int64_t keep_;
  std::vector<CheckpointRow> rows_;
};

}  // namespace verbatim
