// A RecordReader over rows in memory: everything that follows from subnets and head rows, so that a
// test's reader has to give no more than these.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "store/reader.h"
#include "store/seal.h"
#include "store/tree.h"

namespace verbatim {

/// Trees and seals are those of the rows, whatever these are: as of a record that was written so.
class MemoryReader : public RecordReader {
 public:
  RunKind Kind() const override {
    const auto run = Run();
    return run ? run->kind : RunKind::kSupernet;
  }
  Result<std::vector<ResumptionRow>> Resumptions() const override {
    return std::vector<ResumptionRow>{};
  }
  Result<std::vector<CheckpointRow>> Checkpoints() const override {
    return std::vector<CheckpointRow>{};
  }
  Result<std::vector<SealRow>> Seals() const override {
    trees_.reset();  // whoever examines a record asks for its seals last
    ASSIGN_OR_RETURN(const auto run, Run());
    ASSIGN_OR_RETURN(const auto environment, Environment());
    ASSIGN_OR_RETURN(const auto layers, Layers());
    ASSIGN_OR_RETURN(const auto resumptions, Resumptions());
    ASSIGN_OR_RETURN(const auto evaluations, Evaluations());
    return std::vector<SealRow>{{"circumstances", CircumstancesSeal(run, environment, resumptions)},
                                {"end", EndSeal(run, evaluations)},
                                {"start", StartSeal(run, layers)}};
  }
  Result<std::optional<Hash256>> StoredCheckpointSeal(std::int64_t) const override {
    return std::nullopt;
  }
  Result<std::int64_t> TreeSize() const override { return Grow().tree.size(); }
  Result<std::optional<TreeNode>> StoredNode(int level, std::int64_t index) const override {
    const Trees& trees = Grow();
    const auto found = trees.nodes.find(NodeKey(level, index));
    return found == trees.nodes.end() ? std::nullopt : std::optional(found->second);
  }
  Result<std::int64_t> StoredNodeCount() const override { return std::ssize(Grow().nodes); }
  Result<std::optional<TreeNode>> Leaves(std::int64_t seq) const override {
    const Trees& trees = Grow();
    const auto found = trees.leaves.find(seq);
    return found == trees.leaves.end() ? std::nullopt : std::optional(found->second);
  }
  Result<std::map<std::int64_t, TreeNode>> LeavesFrom(std::int64_t first) const override {
    std::map<std::int64_t, TreeNode> leaves = Grow().leaves;
    leaves.erase(leaves.begin(), leaves.lower_bound(first));
    return leaves;
  }
  Result<std::vector<std::string>> SchemaProblems() const override {
    return std::vector<std::string>{};
  }

 private:
  struct Trees {
    RecordTree tree;
    std::map<std::int64_t, TreeNode> leaves;  // by seq
    std::map<std::int64_t, TreeNode> nodes;   // by NodeKey
  };
  const Trees& Grow() const {
    if (trees_) return *trees_;
    Trees& trees = trees_.emplace();
    static_cast<void>(ForEachSubnet({true, true, true}, [&](const SubnetRow& subnet) {
      const TreeNode leaves{subnet.content_leaf, subnet.layout_leaf};
      if (!trees.leaves.emplace(subnet.seq, leaves).second) return true;
      if (subnet.seq < trees.tree.size()) return true;
      trees.tree.Add(subnet.seq, leaves, [&](int level, std::int64_t index, const TreeNode& node) {
        trees.nodes.emplace(NodeKey(level, index), node);
      });
      return true;
    }));
    return trees;
  }

  mutable std::optional<Trees> trees_;
};

}  // namespace verbatim
