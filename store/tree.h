// The two trees of a record while it grows: one of content leaves, one of layout leaves, over the
// longest gap-free prefix of the committed subnets (docs/format.md, "Trees").
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "base/status.h"
#include "store/format.h"
#include "store/merkle.h"
#include "store/record.h"

namespace verbatim {

class RecordReader;

/// Key of table tree.
constexpr std::int64_t NodeKey(int level, std::int64_t index) {
  return std::int64_t{level} << kNodeLevelShift | index;
}

/// A value: a copy is a state to go back to. Not thread-safe.
class RecordTree {
 public:
  /// Told of each complete subtree that is stored: level kLowestStoredLevel and above.
  using OnNode = std::function<void(int level, std::int64_t index, const TreeNode& node)>;

  /// As a record has it.
  static Result<RecordTree> Of(const RecordReader& reader);

  /// Subnets in any order, each once: CHECKs that. Leaves beyond a gap wait until it is filled.
  void Add(std::int64_t seq, const TreeNode& leaves, const OnNode& on_node = {});
  /// Subnets 0 … size() - 1 are under the roots.
  std::int64_t size() const { return content_.size(); }
  Hash256 ContentRoot() const { return content_.Root(); }
  Hash256 LayoutRoot() const { return layout_.Root(); }

 private:
  void Append(const TreeNode& leaves, const OnNode& on_node);

  MerkleFrontier content_;
  MerkleFrontier layout_;
  std::map<std::int64_t, TreeNode> beyond_;
};

}  // namespace verbatim
