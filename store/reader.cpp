#include "store/reader.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <limits>

#include "store/connection.h"
#include "store/format.h"
#include "store/row_reader.h"
#include "store/sqlite_boundary.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using DatabasePointer = std::unique_ptr<SQLite::Database>;

constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kInt64Min = std::numeric_limits<std::int64_t>::min();
constexpr std::size_t kProblemsMax = 100;

tl::unexpected<Error> Damaged(const fs::path& path, const std::string& problem) {
  return BadInput(fmt::format("{} is damaged: {}", path.string(), problem),
                  "restore it from a copy");
}

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
  evaluation.choices = row.Choices();
  evaluation.correct = row.Int(0, kInt64Max);
  evaluation.total = row.Int(0, kInt64Max);
  return evaluation;
}

SubnetRow ReadSubnet(RowReader& row) {
  SubnetRow subnet;
  subnet.seq = row.Int(0, kSeqMax);
  subnet.choices = row.Choices();
  subnet.samples = row.Samples();
  subnet.batch_digest = row.Blob16();
  subnet.loss_bits = static_cast<std::uint32_t>(row.Int(0, 0xffffffff));
  subnet.content_digest = row.Blob16();
  return subnet;
}

// The rows that belong to a subnet come after their seq, which the caller has taken.

AccessRow ReadAccess(RowReader& row) {
  AccessRow access;
  access.layer = static_cast<std::int32_t>(row.Int(0, kAccessKeyLayers - 1));
  access.read_seq = row.Version();
  access.base_seq = row.VersionOr(access.read_seq);
  access.stage = row.Index();
  access.weights = row.OptionalBlob16();
  access.optimizer_state = row.OptionalBlob16();
  access.gradients = row.OptionalBlob16();
  return access;
}

ActivationRow ReadActivation(RowReader& row) {
  ActivationRow activation;
  activation.microbatch = row.Index();
  activation.position = row.Index();
  activation.digest = row.Blob16();
  return activation;
}

ActivityRow ReadActivity(RowReader& row) {
  constexpr std::int64_t kTimeMax = kInt64Max / 2;
  ActivityRow activity;
  activity.stage = row.Index();
  activity.microbatch = row.Index();
  activity.phase = static_cast<Phase>(row.Int(0, 2));
  activity.begin_ns = row.Int(-kTimeMax, kTimeMax);
  activity.end_ns = activity.begin_ns + row.Int(-kTimeMax, kTimeMax);
  return activity;
}

// ---- Tables that belong to subnets, merged with them by seq

// First and last seq to visit.
struct SeqRange {
  std::int64_t first;
  std::int64_t last;
};

// All of them, negative ones (which are damage) included.
constexpr SeqRange kEverySeq{kInt64Min, kInt64Max};

/// What a table of rows that belong to subnets is called and how it is read. The SQL selects seq
/// first and orders by (seq, …); ?1 and ?2 are the first and last seq.
template <typename Row>
struct ChildTable {
  const char* name;
  int key_columns;
  const char* sql;
  Row (*read)(RowReader&);
};

constexpr ChildTable<AccessRow> kAccesses = {
    "accesses", 2,
    "SELECT seq, layer, read_seq, base_seq, stage, weights, optimizer_state, gradients"
    " FROM accesses WHERE access BETWEEN max(?1, -1 << 43) << 20"
    " AND min(?2, (1 << 43) - 1) << 20 | 1048575 ORDER BY access",
    ReadAccess};
constexpr ChildTable<ActivationRow> kActivations = {
    "activations", 3,
    "SELECT seq, microbatch, position, digest FROM activations"
    " WHERE seq BETWEEN ?1 AND ?2 ORDER BY seq, microbatch, position",
    ReadActivation};
constexpr ChildTable<ActivityRow> kActivity = {
    "activity", 5,
    "SELECT seq, stage, microbatch, phase, begin_ns, duration_ns FROM activity"
    " WHERE seq BETWEEN ?1 AND ?2 ORDER BY seq, stage, microbatch, phase, begin_ns",
    ReadActivity};

// A forward cursor over such a table; always stands on the next row not yet taken.
template <typename Row>
class ChildCursor {
 public:
  ChildCursor(SQLite::Database& database, const fs::path& path, const ChildTable<Row>& table,
              const SeqRange& range)
      : path_(path), table_(table), statement_(database, table.sql) {
    statement_.bind(1, range.first);
    statement_.bind(2, range.last);
    has_row_ = statement_.executeStep();
  }

  // Moves the rows of `seq` to `rows`. Called with ascending seq.
  Status Take(std::int64_t seq, std::vector<Row>& rows) {
    while (has_row_) {
      RowReader reader(statement_, table_.name, table_.key_columns);
      const std::int64_t row_seq = reader.Int(0, kSeqMax);
      if (!reader.problem() && row_seq > seq) return {};
      if (!reader.problem() && row_seq < seq) return Orphan(row_seq);
      rows.push_back(table_.read(reader));
      if (reader.problem()) return Damaged(path_, *reader.problem());
      has_row_ = statement_.executeStep();
    }
    return {};
  }

  // After the last subnet: no row may be left.
  Status Finish() {
    if (!has_row_) return {};
    return Orphan(statement_.getColumn(0).getInt64());
  }

 private:
  Status Orphan(std::int64_t seq) {
    return Damaged(
        path_, fmt::format("table {} has rows of seq {}, table subnets has not", table_.name, seq));
  }

  const fs::path& path_;
  const ChildTable<Row>& table_;
  SQLite::Statement statement_;
  bool has_row_ = false;
};

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
  Status ForEachSubnet(const ReadOptions& options,
                       const std::function<bool(const SubnetRow&)>& visit) const override;
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
  Status VisitSubnets(const SeqRange& range, const ReadOptions& options,
                      const std::function<bool(const SubnetRow&)>& visit) const;
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
    SQLite::Statement select(*database_, sql);
    while (select.executeStep()) {
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
              " record_level, device, stages, in_flight, subnets_planned, dataset_digest,"
              " started_utc, ended_utc, status, status_detail FROM run",
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

Status SqliteReader::ForEachSubnet(const ReadOptions& options,
                                   const std::function<bool(const SubnetRow&)>& visit) const {
  return AtBoundary([&] { return VisitSubnets(kEverySeq, options, visit); });
}

Result<std::optional<SubnetRow>> SqliteReader::Subnet(std::int64_t seq,
                                                      const ReadOptions& options) const {
  if (seq < 0 || seq > kSeqMax) return std::nullopt;
  std::optional<SubnetRow> found;
  RETURN_IF_ERROR(AtBoundary([&] {
    return VisitSubnets({seq, seq}, options, [&](const SubnetRow& subnet) {
      found = subnet;
      return true;
    });
  }));
  return found;
}

Status SqliteReader::VisitSubnets(const SeqRange& range, const ReadOptions& options,
                                  const std::function<bool(const SubnetRow&)>& visit) const {
  // One snapshot for all cursors, while a live run adds rows.
  Transaction snapshot(*database_, "BEGIN");
  SQLite::Statement select(*database_,
                           "SELECT seq, choices, samples, batch_digest, loss_bits, content_digest"
                           " FROM subnets"
                           " WHERE seq BETWEEN ? AND ? ORDER BY seq");
  select.bind(1, range.first);
  select.bind(2, range.last);
  std::optional<ChildCursor<AccessRow>> accesses;
  std::optional<ChildCursor<ActivationRow>> activations;
  std::optional<ChildCursor<ActivityRow>> activity;
  if (options.accesses) accesses.emplace(*database_, path_, kAccesses, range);
  if (options.activations) activations.emplace(*database_, path_, kActivations, range);
  if (options.activities) activity.emplace(*database_, path_, kActivity, range);
  while (select.executeStep()) {
    RowReader reader(select, "subnets", 1);
    SubnetRow subnet = ReadSubnet(reader);
    if (reader.problem()) return Damaged(path_, *reader.problem());
    if (accesses) RETURN_IF_ERROR(accesses->Take(subnet.seq, subnet.accesses));
    if (activations) RETURN_IF_ERROR(activations->Take(subnet.seq, subnet.activations));
    if (activity) RETURN_IF_ERROR(activity->Take(subnet.seq, subnet.activities));
    if (!visit(subnet)) return {};
  }
  if (accesses) RETURN_IF_ERROR(accesses->Finish());
  if (activations) RETURN_IF_ERROR(activations->Finish());
  if (activity) RETURN_IF_ERROR(activity->Finish());
  return {};
}

Result<std::vector<LineageRow>> SqliteReader::Lineage(std::int32_t layer) const {
  return AtBoundary([&]() -> Result<std::vector<LineageRow>> {
    std::vector<LineageRow> lineage;
    // One seek per subnet: no index by layer, which would add a fifth to every record.
    SQLite::Statement select(
        *database_,
        "SELECT subnets.seq, layer, read_seq, base_seq, stage, weights, optimizer_state,"
        " gradients FROM subnets CROSS JOIN accesses ON access = subnets.seq << 20 | ?"
        " ORDER BY subnets.seq");
    select.bind(1, layer);
    while (layer >= 0 && layer < kAccessKeyLayers && select.executeStep()) {
      RowReader reader(select, kAccesses.name, kAccesses.key_columns);
      LineageRow row;
      row.seq = reader.Int(0, kSeqMax);
      row.access = ReadAccess(reader);
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

Result<std::unique_ptr<RecordReader>> RecordReader::Open(const fs::path& path) {
  ASSIGN_OR_RETURN(DatabasePointer database, OpenForReading(path));
  return std::make_unique<SqliteReader>(path, std::move(database));
}

}  // namespace verbatim
