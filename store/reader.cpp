#include "store/reader.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "store/connection.h"
#include "store/format.h"
#include "store/packed_rows.h"
#include "store/row_reader.h"
#include "store/schema_check.h"
#include "store/sqlite_boundary.h"
#include "store/subnet_cursor.h"
#include "store/tree.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using DatabasePointer = std::unique_ptr<SQLite::Database>;

constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();

// ---- One row each

RunInfo ReadRun(RowReader& row) {
  RunInfo run;
  row.Int(1, 1);
  run.tool_version = row.Text();
  run.spec_json = row.Text();
  run.spec_folder = row.Text();
  run.command_line = row.Text();
  run.policy = row.Text();
  run.record_level = row.Text();
  run.device = row.Text();
  run.stages = row.Int(1, kInt64Max);
  run.in_flight = row.Int(1, kInt64Max);
  run.partition = row.Text();
  run.subnets_planned = row.Int(0, kInt64Max);
  run.dataset_digest = row.Blob16();
  run.started_utc = row.Text();
  run.ended_utc = row.OptionalText();
  run.status = row.Status();
  run.status_detail = row.Text();
  return run;
}

EnvironmentRow ReadEnvironment(RowReader& row) {
  EnvironmentRow environment;
  environment.key = row.Text();
  environment.value = row.Text();
  return environment;
}

LayerRow ReadLayer(RowReader& row) {
  LayerRow layer;
  layer.layer = static_cast<std::int32_t>(row.Int(0, kLayersMax - 1));
  layer.name = row.Text();
  layer.position = row.Index();
  layer.candidate = row.Index();
  layer.op = row.Text();
  layer.versioned = row.Int(0, 1) == 1;
  layer.initial_digest = row.Blob16();
  return layer;
}

EvaluationRow ReadEvaluation(RowReader& row) {
  EvaluationRow evaluation;
  evaluation.index = row.Int(0, kInt64Max);
  row.Choices(evaluation.choices);
  evaluation.correct = row.Int(0, kInt64Max);
  evaluation.total = row.Int(0, kInt64Max);
  return evaluation;
}

ResumptionRow ReadResumption(RowReader& row) {
  ResumptionRow resumption;
  resumption.resumption = row.Int(1, kInt64Max);
  resumption.tool_version = row.Text();
  resumption.command_line = row.Text();
  resumption.policy = row.Text();
  resumption.device = row.Text();
  resumption.stages = row.Int(1, kInt64Max);
  resumption.in_flight = row.Int(1, kInt64Max);
  resumption.partition = row.Text();
  resumption.cut = row.Int(0, kSeqMax);
  resumption.started_utc = row.Text();
  resumption.facts_json = row.Text();
  return resumption;
}

CheckpointRow ReadCheckpoint(RowReader& row) {
  CheckpointRow checkpoint;
  checkpoint.cut = row.Int(0, kSeqMax);
  checkpoint.created_utc = row.Text();
  row.Require(UnpackManifest(row.Blob(), checkpoint.layers));
  return checkpoint;
}

SealRow ReadSeal(RowReader& row) {
  SealRow seal;
  seal.part = row.Text();
  seal.seal = row.Blob32();
  return seal;
}

// ---- The reader

class SqliteReader final : public RecordReader {
 public:
  SqliteReader(fs::path path, ReadConnection connection)
      : path_(std::move(path)), kind_(connection.kind), database_(std::move(connection.database)) {}

  RunKind Kind() const override { return kind_; }
  Result<RunInfo> Run() const override;
  Result<std::vector<EnvironmentRow>> Environment() const override;
  Result<std::vector<LayerRow>> Layers() const override;
  Result<std::int64_t> SubnetCount() const override { return Count("subnets"); }
  Result<std::int64_t> AccessCount() const override;
  Result<std::unique_ptr<SubnetCursor>> Subnets(const ReadOptions& options) const override {
    return OpenSubnets(path_, database_, kind_, kEverySeq, options);
  }
  Result<std::optional<SubnetRow>> Subnet(std::int64_t seq,
                                          const ReadOptions& options) const override;
  Result<std::vector<LineageRow>> Lineage(std::int32_t layer) const override;
  Result<std::vector<EvaluationRow>> Evaluations() const override;
  Result<std::vector<ResumptionRow>> Resumptions() const override;
  Result<std::vector<CheckpointRow>> Checkpoints() const override;
  Result<std::vector<SealRow>> Seals() const override;
  Result<std::optional<Hash256>> StoredCheckpointSeal(std::int64_t cut) const override;
  Result<std::int64_t> TreeSize() const override;
  Result<std::optional<TreeNode>> StoredNode(int level, std::int64_t index) const override;
  Result<std::int64_t> StoredNodeCount() const override { return Count("tree"); }
  Result<std::optional<TreeNode>> Leaves(std::int64_t seq) const override;
  Result<std::map<std::int64_t, TreeNode>> LeavesFrom(std::int64_t first) const override;
  Result<Head> HeadNow() const override;
  Result<std::vector<std::string>> SchemaProblems() const override;
  Result<std::vector<std::string>> IntegrityProblems() const override;

 private:
  template <typename Body>
  auto AtBoundary(const Body& body) const {
    return AtSqliteBoundary(path_, Doing::kReading, database_, body);
  }
  Result<std::int64_t> Count(const char* table) const;
  template <typename Row>
  Result<std::vector<Row>> ReadAll(const char* table, const char* sql,
                                   Row (*read)(RowReader&)) const;
  Result<std::optional<TreeNode>> NodeByKey(std::optional<Query>& select, const char* table,
                                            const char* sql, std::int64_t key) const;
  void AddIntegrityProblems(std::vector<std::string>& problems) const;

  fs::path path_;
  RunKind kind_;
  DatabasePointer database_;
  // Asked again and again; prepared when asked first.
  mutable std::optional<Query> select_node_;
  mutable std::optional<Query> select_leaves_;
};

Result<std::int64_t> SqliteReader::Count(const char* table) const {
  return AtBoundary([&]() -> Result<std::int64_t> {
    return database_->execAndGet(fmt::format("SELECT count(*) FROM {}", table)).getInt64();
  });
}

template <typename Row>
Result<std::vector<Row>> SqliteReader::ReadAll(const char* table, const char* sql,
                                               Row (*read)(RowReader&)) const {
  return AtBoundary([&]() -> Result<std::vector<Row>> {
    std::vector<Row> rows;
    Query select(*database_, sql);
    while (select.Step()) {
      RowReader reader(select, table, 1);
      rows.push_back(read(reader));
      if (reader.problem()) return Damaged(path_, *reader.problem());
    }
    return rows;
  });
}

Result<RunInfo> SqliteReader::Run() const {
  ASSIGN_OR_RETURN(
      std::vector<RunInfo> rows,
      ReadAll("run",
              "SELECT id, tool_version, spec_json, spec_folder, command_line, policy,"
              " record_level, device, stages, in_flight, partition, subnets_planned,"
              " dataset_digest, started_utc, ended_utc, status, status_detail FROM run",
              ReadRun));
  if (rows.size() == 1) {
    rows[0].kind = kind_;
    return std::move(rows[0]);
  }
  return Damaged(path_, fmt::format("table run has {} rows, not one", rows.size()));
}

Result<std::vector<EnvironmentRow>> SqliteReader::Environment() const {
  return ReadAll("environment", "SELECT key, value FROM environment ORDER BY key", ReadEnvironment);
}

Result<std::vector<LayerRow>> SqliteReader::Layers() const {
  return ReadAll("layers",
                 "SELECT layer, name, position, candidate, op, versioned, initial_digest"
                 " FROM layers ORDER BY layer",
                 ReadLayer);
}

Result<std::vector<EvaluationRow>> SqliteReader::Evaluations() const {
  return ReadAll("evaluations",
                 "SELECT evaluation, choices, correct, total FROM evaluations"
                 " ORDER BY evaluation",
                 ReadEvaluation);
}

Result<std::optional<SubnetRow>> SqliteReader::Subnet(std::int64_t seq,
                                                      const ReadOptions& options) const {
  if (seq < 0 || seq > kSeqMax) return std::nullopt;
  ASSIGN_OR_RETURN(const auto cursor, OpenSubnets(path_, database_, kind_, {seq, seq}, options));
  ASSIGN_OR_RETURN(const SubnetRow* const found, cursor->Next());
  if (found == nullptr) return std::nullopt;
  std::optional<SubnetRow> subnet(*found);
  RETURN_IF_ERROR(cursor->Next());
  return subnet;
}

Result<std::int64_t> SqliteReader::AccessCount() const {
  return AtBoundary([&]() -> Result<std::int64_t> {
    std::int64_t count = 0;
    Query select(*database_, "SELECT seq, accesses FROM subnets");
    while (select.Step()) {
      RowReader row(select, "subnets", 1);
      row.Int(0, kSeqMax);
      const auto accesses = CountPackedAccesses(row.Blob());
      if (!accesses) row.Require("holds no list of accesses");
      if (row.problem()) return Damaged(path_, *row.problem());
      count += *accesses;
    }
    return count;
  });
}

Result<std::vector<LineageRow>> SqliteReader::Lineage(std::int32_t layer) const {
  return AtBoundary([&]() -> Result<std::vector<LineageRow>> {
    std::vector<LineageRow> lineage;
    std::vector<AccessRow> accesses;
    Query select(*database_, "SELECT seq, accesses FROM subnets ORDER BY seq");
    while (select.Step()) {
      RowReader row(select, "subnets", 1);
      const std::int64_t seq = row.Int(0, kSeqMax);
      row.Require(UnpackAccesses(seq, row.Blob(), accesses));
      if (row.problem()) return Damaged(path_, *row.problem());
      const auto found = std::lower_bound(
          accesses.begin(), accesses.end(), layer,
          [](const AccessRow& access, std::int32_t wanted) { return access.layer < wanted; });
      if (found != accesses.end() && found->layer == layer) lineage.push_back({seq, *found});
    }
    return lineage;
  });
}

Result<std::vector<ResumptionRow>> SqliteReader::Resumptions() const {
  return ReadAll("resumptions",
                 "SELECT resumption, tool_version, command_line, policy, device, stages, in_flight,"
                 " partition, cut, started_utc, facts_json FROM resumptions ORDER BY resumption",
                 ReadResumption);
}

Result<std::vector<CheckpointRow>> SqliteReader::Checkpoints() const {
  return ReadAll("checkpoints", "SELECT cut, created_utc, manifest FROM checkpoints ORDER BY cut",
                 ReadCheckpoint);
}

Result<std::vector<SealRow>> SqliteReader::Seals() const {
  return ReadAll("seals", "SELECT part, seal FROM seals ORDER BY part", ReadSeal);
}

Result<std::optional<Hash256>> SqliteReader::StoredCheckpointSeal(std::int64_t cut) const {
  return AtBoundary([&]() -> Result<std::optional<Hash256>> {
    Query select(*database_, "SELECT cut, seal FROM checkpoints WHERE cut = ?");
    select.Bind(1, cut);
    if (!select.Step()) return std::nullopt;
    RowReader row(select, "checkpoints", 1);
    row.Int(0, kSeqMax);
    const Hash256 seal = row.Blob32();
    if (row.problem()) return Damaged(path_, *row.problem());
    return seal;
  });
}

// ---- The trees

Result<std::optional<TreeNode>> SqliteReader::NodeByKey(std::optional<Query>& select,
                                                        const char* table, const char* sql,
                                                        std::int64_t key) const {
  return AtBoundary([&]() -> Result<std::optional<TreeNode>> {
    if (!select) select.emplace(*database_, sql);
    select->Reset();
    select->Bind(1, key);
    std::optional<TreeNode> node;
    std::optional<std::string> problem;
    if (select->Step()) {
      RowReader row(*select, table, 1);
      row.Int(key, key);
      node.emplace();
      node->content = row.Blob32();
      node->layout = row.Blob32();
      problem = row.problem();
    }
    select->Reset();
    if (problem) return Damaged(path_, *problem);
    return node;
  });
}

Result<std::optional<TreeNode>> SqliteReader::StoredNode(int level, std::int64_t index) const {
  return NodeByKey(select_node_, "tree", "SELECT node, content, layout FROM tree WHERE node = ?",
                   NodeKey(level, index));
}

Result<std::optional<TreeNode>> SqliteReader::Leaves(std::int64_t seq) const {
  return NodeByKey(select_leaves_, "subnets",
                   "SELECT seq, content_leaf, layout_leaf FROM subnets WHERE seq = ?", seq);
}

Result<std::map<std::int64_t, TreeNode>> SqliteReader::LeavesFrom(std::int64_t first) const {
  return AtBoundary([&]() -> Result<std::map<std::int64_t, TreeNode>> {
    std::map<std::int64_t, TreeNode> leaves;
    Query select(*database_,
                 "SELECT seq, content_leaf, layout_leaf FROM subnets WHERE seq >= ? ORDER BY seq");
    select.Bind(1, first);
    while (select.Step()) {
      RowReader row(select, "subnets", 1);
      TreeNode& node = leaves[row.Int(0, kSeqMax)];
      node.content = row.Blob32();
      node.layout = row.Blob32();
      if (row.problem()) return Damaged(path_, *row.problem());
    }
    return leaves;
  });
}

Result<std::int64_t> SqliteReader::TreeSize() const {
  return AtBoundary([&]() -> Result<std::int64_t> {
    Query last(*database_, "SELECT coalesce(max(node), ?1 - 1) - ?1 FROM tree WHERE node < ?2");
    last.Bind(1, NodeKey(kLowestStoredLevel, 0));
    last.Bind(2, NodeKey(kLowestStoredLevel + 1, 0));
    last.Step();
    RowReader row(last, "tree", 0);
    std::int64_t size = (row.Int(-1, kSeqMax >> kLowestStoredLevel) + 1) << kLowestStoredLevel;
    if (row.problem()) return Damaged(path_, *row.problem());
    Query rows(*database_, "SELECT seq FROM subnets WHERE seq >= ? ORDER BY seq");
    rows.Bind(1, size);
    while (rows.Step() && sqlite3_column_int64(rows.statement(), 0) == size) ++size;
    return size;
  });
}

Result<Head> SqliteReader::HeadNow() const {
  return AtBoundary([&]() -> Result<Head> {
    const Transaction snapshot(*database_, "BEGIN");
    return RecordReader::HeadNow();
  });
}

// ---- What is wrong with it as a file

Result<std::vector<std::string>> SqliteReader::SchemaProblems() const {
  return AtBoundary([&]() -> Result<std::vector<std::string>> {
    return verbatim::SchemaProblems(*database_, kind_);
  });
}

Result<std::vector<std::string>> SqliteReader::IntegrityProblems() const {
  return AtBoundary([&]() -> Result<std::vector<std::string>> {
    std::vector<std::string> problems;
    try {
      AddIntegrityProblems(problems);
    } catch (const SQLite::Exception& exception) {
      // Damage can be too deep for the check itself.
      const int code = exception.getErrorCode() & 0xff;
      if (code != SQLITE_CORRUPT && code != SQLITE_NOTADB) throw;
      problems.push_back(exception.what());
    }
    return problems;
  });
}

void SqliteReader::AddIntegrityProblems(std::vector<std::string>& problems) const {
  SQLite::Statement check(*database_, "PRAGMA integrity_check");
  while (check.executeStep()) {
    const std::string line = check.getColumn(0).getString();
    if (line != "ok") problems.push_back(line);
  }
  if (kind_ != RunKind::kSteps) return;
  SQLite::Statement lost(*database_,
                         "SELECT seq FROM steps WHERE seq NOT IN (SELECT seq FROM subnets)");
  while (lost.executeStep()) {
    problems.push_back(fmt::format("table steps has a row of seq {}, which table subnets has not",
                                   lost.getColumn(0).getInt64()));
  }
}

}  // namespace

Status RecordReader::ForEachSubnet(const ReadOptions& options,
                                   const std::function<bool(const SubnetRow&)>& visit) const {
  ASSIGN_OR_RETURN(const auto cursor, Subnets(options));
  while (true) {
    ASSIGN_OR_RETURN(const SubnetRow* const subnet, cursor->Next());
    if (subnet == nullptr || !visit(*subnet)) return {};
  }
}

Result<std::unique_ptr<RecordReader>> RecordReader::Open(const fs::path& path) {
  ASSIGN_OR_RETURN(ReadConnection connection, OpenForReading(path));
  return std::make_unique<SqliteReader>(path, std::move(connection));
}

}  // namespace verbatim
