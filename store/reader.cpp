#include "store/reader.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <limits>

#include "store/connection.h"
#include "store/format.h"
#include "store/row_reader.h"
#include "store/sqlite_boundary.h"
#include "store/subnet_cursor.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using DatabasePointer = std::unique_ptr<SQLite::Database>;

constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kProblemsMax = 100;

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
  layer.layer = static_cast<std::int32_t>(row.Int(0, kAccessKeyLayers - 1));
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

// ---- The reader

class SqliteReader final : public RecordReader {
 public:
  SqliteReader(fs::path path, DatabasePointer database)
      : path_(std::move(path)), database_(std::move(database)) {}

  Result<RunInfo> Run() const override;
  Result<std::vector<EnvironmentRow>> Environment() const override;
  Result<std::vector<LayerRow>> Layers() const override;
  Result<std::int64_t> SubnetCount() const override { return Count("subnets"); }
  Result<std::int64_t> AccessCount() const override { return Count("accesses"); }
  Result<std::unique_ptr<SubnetCursor>> Subnets(const ReadOptions& options) const override {
    return OpenSubnets(path_, database_, kEverySeq, options);
  }
  Result<std::optional<SubnetRow>> Subnet(std::int64_t seq,
                                          const ReadOptions& options) const override;
  Result<std::vector<LineageRow>> Lineage(std::int32_t layer) const override;
  Result<std::vector<EvaluationRow>> Evaluations() const override;
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
  void AddIntegrityProblems(std::vector<std::string>& problems) const;

  fs::path path_;
  DatabasePointer database_;
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
  if (rows.size() == 1) return std::move(rows[0]);
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
  ASSIGN_OR_RETURN(const auto cursor, OpenSubnets(path_, database_, {seq, seq}, options));
  ASSIGN_OR_RETURN(const SubnetRow* const found, cursor->Next());
  if (found == nullptr) return std::nullopt;
  std::optional<SubnetRow> subnet(*found);
  RETURN_IF_ERROR(cursor->Next());
  return subnet;
}

Result<std::vector<LineageRow>> SqliteReader::Lineage(std::int32_t layer) const {
  return AtBoundary([&]() -> Result<std::vector<LineageRow>> {
    std::vector<LineageRow> lineage;
    // One seek per subnet: no index by layer, which would add a fifth to every record.
    Query select(*database_,
                 "SELECT access, read_seq, base_seq, stage, weights, optimizer_state,"
                 " gradients FROM subnets CROSS JOIN accesses ON access = subnets.seq << 20 | ?"
                 " ORDER BY subnets.seq");
    select.Bind(1, layer);
    while (layer >= 0 && layer < kAccessKeyLayers && select.Step()) {
      RowReader reader(select, kAccessTable, RowReader::kAccessKey);
      LineageRow row;
      const std::int64_t key = reader.Int(0, kInt64Max);
      row.seq = key >> kAccessLayerBits;
      ReadAccess(reader, key, row.access);
      if (reader.problem()) return Damaged(path_, *reader.problem());
      lineage.push_back(row);
    }
    return lineage;
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
  SQLite::Statement references(*database_,
                               "SELECT \"table\", rowid, parent FROM pragma_foreign_key_check");
  while (problems.size() < kProblemsMax && references.executeStep()) {
    problems.push_back(fmt::format(
        "table {}, rowid {}: its row in table {} is missing", references.getColumn(0).getString(),
        references.getColumn(1).getString(), references.getColumn(2).getString()));
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
  ASSIGN_OR_RETURN(DatabasePointer database, OpenForReading(path));
  return std::make_unique<SqliteReader>(path, std::move(database));
}

}  // namespace verbatim
