// Whether the trees that a record keeps (docs/format.md, "Trees") are those of its subnets' leaves.
#pragma once

#include <cstdint>

#include "store/reader.h"
#include "store/tree.h"
#include "verify/verdict.h"

namespace verbatim {

/// Streams over subnets; memory grows with the logarithm of their number, and with how many lie
/// beyond a gap. Not thread-safe.
class TreeCheck {
 public:
  /// Keeps a reference.
  explicit TreeCheck(const RecordReader& reader) : reader_(reader) {}

  /// All subnets of the record, with the leaves that their rows hold. That these are the leaves of
  /// their content is somebody else's to check.
  void Add(const SubnetRow& subnet);
  /// The subnets from here on cannot be read.
  void Stop() { stopped_ = true; }
  /// Call once, at the end.
  Check Finish();

 private:
  void CheckNode(int level, std::int64_t index, const TreeNode& node);

  const RecordReader& reader_;
  RecordTree tree_;
  std::int64_t last_seq_ = -1;
  std::int64_t nodes_ = 0;
  bool stopped_ = false;
  Check check_ = PassedCheck("");
};

}  // namespace verbatim
