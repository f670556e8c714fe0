// Reads one record, which may still be growing.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
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

  virtual Result<RunInfo> Run() const = 0;
  /// Ascending by key.
  virtual Result<std::vector<EnvironmentRow>> Environment() const = 0;
  virtual Result<std::vector<LayerRow>> Layers() const = 0;
  /// Rows in `subnets`, rows in `accesses`.
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
  /// Accesses of one layer in ascending seq: one seek per subnet of the record.
  virtual Result<std::vector<LineageRow>> Lineage(std::int32_t layer) const = 0;
  virtual Result<std::vector<EvaluationRow>> Evaluations() const = 0;
  /// SQLite's own integrity and foreign-key checks: one line per problem, empty where sound.
  virtual Result<std::vector<std::string>> IntegrityProblems() const = 0;
};

}  // namespace verbatim
