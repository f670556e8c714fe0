#include "recorder/recorded_checkpoints.h"

#include <algorithm>

#include "base/check.h"
#include "base/utc_time.h"

namespace verbatim {

Result<std::unique_ptr<RecordedCheckpoints>> RecordedCheckpoints::Open(
    const std::filesystem::path& record, Recorder& recorder, std::int64_t keep,
    std::vector<CheckpointRow> rows) {
  VERBATIM_CHECK(keep >= 1, "{} checkpoints are to be kept", keep);
  ASSIGN_OR_RETURN(CheckpointFiles files, CheckpointFiles::Open(CheckpointFolder(record)));
  return std::unique_ptr<RecordedCheckpoints>(
      new RecordedCheckpoints(std::move(files), recorder, keep, std::move(rows)));
}

Result<Hash256> RecordedCheckpoints::WriteLayer(const EncodedTensors& tensors) {
  return files_.Write(tensors);
}

Status RecordedCheckpoints::WriteCheckpoint(CheckpointRow checkpoint) {
  checkpoint.created_utc = UtcNow();
  RETURN_IF_ERROR(recorder_.AddCheckpoint(checkpoint, keep_));
  // As the record has it now.
  std::erase_if(rows_, [&](const CheckpointRow& row) { return row.cut == checkpoint.cut; });
  rows_.push_back(std::move(checkpoint));
  std::sort(rows_.begin(), rows_.end(),
            [](const CheckpointRow& a, const CheckpointRow& b) { return a.cut < b.cut; });
  if (std::ssize(rows_) > keep_) rows_.erase(rows_.begin(), rows_.end() - keep_);
  return files_.RemoveUnnamed(rows_);
}

}  // namespace verbatim
