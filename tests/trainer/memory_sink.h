// Checkpoints of a test's run, in memory.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "recorder/checkpoint_sink.h"
#include "store/merkle.h"

namespace verbatim {

/// Keeps checkpoints in memory.
class MemorySink : public CheckpointSink {
 public:
  Result<Hash256> WriteLayer(const EncodedTensors& tensors) override {
    std::string bytes;
    for (const std::string_view piece : tensors.Pieces()) bytes += piece;
    const Hash256 file = Blake2b(bytes);
    ++written;
    files[file] = std::move(bytes);
    return file;
  }
  Status WriteCheckpoint(CheckpointRow checkpoint) override {
    rows.push_back(std::move(checkpoint));
    return {};
  }

  std::map<Hash256, std::string> files;
  std::vector<CheckpointRow> rows;
  int written = 0;
};

}  // namespace verbatim
