// Whether a record's checkpoints are what its subnets left: each file has the hash in its name, and
// its tensors have the digests that the newest access below the cut recorded (docs/format.md,
// "Checkpoints"). No LibTorch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/record.h"
#include "verify/layer_table.h"
#include "verify/verdict.h"

namespace verbatim {

/// Streams over subnets; memory grows with the numbers of layers and checkpoints. Not thread-safe.
class CheckpointCheck {
 public:
  /// `checkpoints` by ascending cut, `folder` where their files are. Keeps a reference to `table`.
  CheckpointCheck(const LayerTable& table, std::vector<CheckpointRow> checkpoints,
                  std::filesystem::path folder);

  /// All subnets of the record, in ascending seq.
  void Add(const SubnetRow& subnet);
  /// Reads the files, one at a time. Call once, at the end.
  Check Finish();
  /// After that: cuts of checkpoints with problems, and the first one of each.
  const std::map<std::int64_t, std::string>& unsound() const { return unsound_; }

 private:
  /// One version of one layer, as it was recorded.
  struct Version {
    std::int64_t seq = -1;
    std::optional<Digest> weights;
    std::optional<Digest> optimizer_state;
  };

  /// Compares the checkpoints at `seq` or below with the versions so far.
  void PassCuts(std::int64_t seq);
  void CheckVersions(const CheckpointRow& checkpoint);
  void Damage(const CheckpointRow& checkpoint, const std::string& problem);
  void CheckFile(const Hash256& file, std::int32_t layer, const Version& version);
  Status CompareFile(const Hash256& file, std::int32_t layer, const Version& version) const;

  const LayerTable& table_;
  const std::vector<CheckpointRow> checkpoints_;
  const std::filesystem::path folder_;
  Check check_;
  std::map<std::int64_t, std::string> unsound_;
  std::size_t next_cut_ = 0;     ///< index of the first checkpoint that is not passed yet
  std::vector<Version> newest_;  ///< by layer
  std::int64_t subnets_ = 0;     ///< all below it are recorded
  /// What the files must hold, each once, by file and layer.
  std::map<std::pair<Hash256, std::int32_t>, Version> expected_;
};

}  // namespace verbatim
