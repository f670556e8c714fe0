#include "store/tree.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/utc_time.h"
#include "store/head.h"
#include "store/reader.h"
#include "store/seal.h"

namespace verbatim {
namespace {

TreeNode Parent(const TreeNode& left, const TreeNode& right) {
  return {NodeHash(left.content, right.content), NodeHash(left.layout, right.layout)};
}

}  // namespace

Result<RecordTree> RecordTree::Of(const RecordReader& reader) {
  RecordTree tree;
  ASSIGN_OR_RETURN(const std::int64_t size, reader.TreeSize());
  ASSIGN_OR_RETURN(tree.content_, FrontierOf(size, reader.ContentTree()));
  ASSIGN_OR_RETURN(tree.layout_, FrontierOf(size, reader.LayoutTree()));
  ASSIGN_OR_RETURN(tree.beyond_, reader.LeavesFrom(size));
  return tree;
}

void RecordTree::Add(std::int64_t seq, const TreeNode& leaves, const OnNode& on_node) {
  VERBATIM_CHECK(seq >= size() && !beyond_.contains(seq), "subnet {} is in the tree already", seq);
  if (seq > size()) {
    beyond_.emplace(seq, leaves);
    return;
  }
  Append(leaves, on_node);
  for (auto next = beyond_.begin(); next != beyond_.end() && next->first == size();
       next = beyond_.erase(next)) {
    Append(next->second, on_node);
  }
}

void RecordTree::Append(const TreeNode& leaves, const OnNode& on_node) {
  std::vector<Hash256> completed;
  content_.Add(leaves.content, [&](int level, std::int64_t /*index*/, const Hash256& hash) {
    if (level >= kLowestStoredLevel) completed.push_back(hash);
  });
  // Both complete the same subtrees.
  layout_.Add(leaves.layout, [&](int level, std::int64_t index, const Hash256& hash) {
    if (level < kLowestStoredLevel || !on_node) return;
    on_node(level, index, {completed[static_cast<std::size_t>(level - kLowestStoredLevel)], hash});
  });
}

Result<TreeNode> RecordReader::CompleteSubtree(int level, std::int64_t index) const {
  if (level >= kLowestStoredLevel) {
    ASSIGN_OR_RETURN(const auto node, StoredNode(level, index));
    if (node) return *node;
    return BadInput(fmt::format("the record has no tree node of level {}, index {}", level, index),
                    "examine it with verbatim verify");
  }
  if (level > 0) {
    ASSIGN_OR_RETURN(const TreeNode left, CompleteSubtree(level - 1, 2 * index));
    ASSIGN_OR_RETURN(const TreeNode right, CompleteSubtree(level - 1, 2 * index + 1));
    return Parent(left, right);
  }
  ASSIGN_OR_RETURN(const auto leaves, Leaves(index));
  if (leaves) return *leaves;
  return BadInput(fmt::format("the record has no subnet {}", index),
                  "examine it with verbatim verify");
}

MerkleSource RecordReader::ContentTree() const {
  return [this](int level, std::int64_t index) -> Result<Hash256> {
    ASSIGN_OR_RETURN(const TreeNode node, CompleteSubtree(level, index));
    return node.content;
  };
}

MerkleSource RecordReader::LayoutTree() const {
  return [this](int level, std::int64_t index) -> Result<Hash256> {
    ASSIGN_OR_RETURN(const TreeNode node, CompleteSubtree(level, index));
    return node.layout;
  };
}

Result<Head> RecordReader::HeadAt(std::int64_t subnets, std::int64_t resumptions) const {
  ASSIGN_OR_RETURN(const RunInfo run, Run());
  ASSIGN_OR_RETURN(const std::vector<LayerRow> layers, Layers());
  ASSIGN_OR_RETURN(const std::vector<EnvironmentRow> environment, Environment());
  ASSIGN_OR_RETURN(const std::vector<ResumptionRow> all, Resumptions());
  ASSIGN_OR_RETURN(const std::int64_t size, TreeSize());
  if (subnets < 0 || subnets > size) {
    return BadInput(fmt::format("the record has {} subnets without a gap, not {}", size, subnets));
  }
  if (resumptions < 0 || resumptions > std::ssize(all)) {
    return BadInput(fmt::format("the run was resumed {} times, not {}", all.size(), resumptions));
  }
  Head head;
  head.subnets = subnets;
  head.resumptions = resumptions;
  ASSIGN_OR_RETURN(head.content_root, MerkleRoot(subnets, ContentTree()));
  ASSIGN_OR_RETURN(head.layout_root, MerkleRoot(subnets, LayoutTree()));
  head.start = StartSeal(run, layers);
  head.circumstances = CircumstancesSeal(
      run, environment, std::span(all).first(static_cast<std::size_t>(resumptions)));
  head.created_utc = UtcNow();
  return head;
}

Result<Head> RecordReader::HeadNow() const {
  ASSIGN_OR_RETURN(const std::int64_t size, TreeSize());
  ASSIGN_OR_RETURN(const std::vector<ResumptionRow> resumptions, Resumptions());
  ASSIGN_OR_RETURN(Head head, HeadAt(size, std::ssize(resumptions)));
  ASSIGN_OR_RETURN(const RunInfo run, Run());
  if (run.status == RunStatus::kRunning) return head;
  ASSIGN_OR_RETURN(const std::vector<EvaluationRow> evaluations, Evaluations());
  head.end = EndSeal(run, evaluations);
  return head;
}

}  // namespace verbatim
