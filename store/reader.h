// Reads one record, which may still be growing.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "store/head.h"
#include "store/merkle.h"
#include "store/record.h"

namespace verbatim {

/// Which parts of a SubnetRow to read; the others stay empty.
struct ReadOptions {
  bool accesses = true;
  bool activations = false;
  bool activities = false;
};

/// One access of a layer's lineage.
struct LineageRow {
  std::int64_t seq = 0;
  AccessRow access;
};

/// Walks a record's subnets in ascending seq, streaming: memory does not grow with the run. All
/// rows are of one moment of a growing record. Not thread-safe; the reader outlives it.
class SubnetCursor {
 public:
  virtual ~SubnetCursor() = default;
  /// The next subnet, in memory that the next call uses again; null after the last.
  virtual Result<const SubnetRow*> Next() = 0;
};

/// Not thread-safe. Errors are kBadInput (missing, no SQLite file, not a record, unknown version,
/// damaged: table, row and column are named) or kFailed (lock, permission, input/output), with the
/// file, what was found and what to do. Every value is checked when its row is read; what a value
/// means is not (read_seq after seq, a layer twice): that is verify's.
class RecordReader {
 public:
  /// Opens read-only; works on a read-only file, in a read-only folder, and beside a live writer.
  static Result<std::unique_ptr<RecordReader>> Open(const std::filesystem::path& path);
  virtual ~RecordReader() = default;

  virtual RunKind Kind() const = 0;
  virtual Result<RunInfo> Run() const = 0;
  /// Ascending by key.
  virtual Result<std::vector<EnvironmentRow>> Environment() const = 0;
  virtual Result<std::vector<LayerRow>> Layers() const = 0;
  /// Rows in table `subnets`, and accesses in all of them.
  virtual Result<std::int64_t> SubnetCount() const = 0;
  virtual Result<std::int64_t> AccessCount() const = 0;
  /// Of the cursors of one reader, the one opened first must be destroyed last.
  virtual Result<std::unique_ptr<SubnetCursor>> Subnets(const ReadOptions& options) const = 0;
  /// Visits all subnets of such a cursor. Stops early with OK where `visit` returns false.
  Status ForEachSubnet(const ReadOptions& options,
                       const std::function<bool(const SubnetRow&)>& visit) const;
  /// Nothing where seq has no row.
  virtual Result<std::optional<SubnetRow>> Subnet(std::int64_t seq,
                                                  const ReadOptions& options) const = 0;
  /// Accesses of one layer in ascending seq. Reads all subnets' accesses.
  virtual Result<std::vector<LineageRow>> Lineage(std::int32_t layer) const = 0;
  virtual Result<std::vector<EvaluationRow>> Evaluations() const = 0;
  /// Ascending.
  virtual Result<std::vector<ResumptionRow>> Resumptions() const = 0;
  /// By ascending cut.
  virtual Result<std::vector<CheckpointRow>> Checkpoints() const = 0;
  /// The seals that the record keeps over its rows (not over checkpoints), by part.
  virtual Result<std::vector<SealRow>> Seals() const = 0;
  /// The seal that the record keeps over one checkpoint; nothing where there is no such row.
  virtual Result<std::optional<Hash256>> StoredCheckpointSeal(std::int64_t cut) const = 0;

  /// Subnets under the record's trees: the longest prefix without a gap, as far as stored nodes and
  /// the rows after them tell.
  virtual Result<std::int64_t> TreeSize() const = 0;
  /// A row of table `tree`; nothing where there is none. Rows of that table in all.
  virtual Result<std::optional<TreeNode>> StoredNode(int level, std::int64_t index) const = 0;
  virtual Result<std::int64_t> StoredNodeCount() const = 0;
  /// The leaves that one subnet's row holds; nothing where it has no row.
  virtual Result<std::optional<TreeNode>> Leaves(std::int64_t seq) const = 0;
  /// Of all rows from `first` on.
  virtual Result<std::map<std::int64_t, TreeNode>> LeavesFrom(std::int64_t first) const = 0;
  /// The record's trees, from what it stores; the reader outlives them. kBadInput where something
  /// that is asked for is missing.
  MerkleSource ContentTree() const;
  MerkleSource LayoutTree() const;

  /// A head of the first `subnets` <= TreeSize() subnets and `resumptions`, without an end.
  Result<Head> HeadAt(std::int64_t subnets, std::int64_t resumptions) const;
  /// A head of everything, of one moment; with its end where the run has ended.
  virtual Result<Head> HeadNow() const;

  /// Whether tables and views are those that this program creates: one line per problem.
  virtual Result<std::vector<std::string>> SchemaProblems() const = 0;
  /// SQLite's own integrity check: one line per problem, empty where sound.
  virtual Result<std::vector<std::string>> IntegrityProblems() const = 0;

 private:
  Result<TreeNode> CompleteSubtree(int level, std::int64_t index) const;
};

}  // namespace verbatim
