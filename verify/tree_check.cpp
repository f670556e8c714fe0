#include "verify/tree_check.h"

#include <fmt/format.h>

#include "verify/examine.h"
#include "verify/run_words.h"
#include "verify/text.h"

namespace verbatim {

void TreeCheck::Add(const SubnetRow& subnet) {
  if (stopped_ || subnet.seq <= last_seq_) return;  // the latter is damage of another kind
  last_seq_ = subnet.seq;
  tree_.Add(subnet.seq, {subnet.content_leaf, subnet.layout_leaf},
            [this](int level, std::int64_t index, const TreeNode& node) {
              CheckNode(level, index, node);
            });
}

void TreeCheck::CheckNode(int level, std::int64_t index, const TreeNode& node) {
  ++nodes_;
  const auto about = [&](const char* problem) {
    const std::int64_t first = index << level;
    const char* const rows = reader_.Kind() == RunKind::kSteps ? "rows" : "subnets";
    return fmt::format("{} {} … {}: the tree node over them (level {}) {}", rows, first,
                       first + (std::int64_t{1} << level) - 1, level, problem);
  };
  const auto stored = reader_.StoredNode(level, index);
  if (!stored) {
    AddDamage(check_, stored.error().message);
  } else if (!*stored) {
    AddDamage(check_, about("is missing"));
  } else if ((*stored)->content != node.content) {
    AddDamage(check_, about("is not that of their content"));
  } else if ((*stored)->layout != node.layout) {
    AddDamage(check_, about("is not that of their stages and times"));
  }
}

Check TreeCheck::Finish() {
  check_.name = kCheckTrees;
  if (!stopped_) {
    const auto stored = reader_.StoredNodeCount();
    if (!stored) {
      AddDamage(check_, stored.error().message);
    } else if (*stored > nodes_) {
      AddDamage(check_, fmt::format("{} more than its subnets have",
                                    FormatCount(*stored - nodes_, "tree node", "tree nodes")));
    }
  }
  check_.detail = fmt::format("over {}, content {}", CountRows(tree_.size(), reader_.Kind()),
                              ToShortHex(tree_.ContentRoot()));
  if (stopped_) check_.detail += "; those after it cannot be read";
  return std::move(check_);
}

}  // namespace verbatim
