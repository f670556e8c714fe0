#include "store/writer.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <vector>

#include "base/check.h"
#include "base/utc_time.h"
#include "store/record_file.h"
#include "store/schema.h"
#include "store/sqlite_boundary.h"
#include "store/values.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using DatabasePointer = std::unique_ptr<SQLite::Database>;

// Binds one row's values in column order without copying them, then inserts the row. What is bound
// must live until Run.
class Row {
 public:
  explicit Row(SQLite::Statement& statement) : statement_(statement) { statement_.tryReset(); }

  Row& Int(std::int64_t value) {
    statement_.bind(++column_, value);
    return *this;
  }
  Row& Null() {
    statement_.bind(++column_);
    return *this;
  }
  Row& Text(const std::string& value) {
    statement_.bindNoCopy(++column_, value);
    return *this;
  }
  Row& Blob(const std::string& value) {
    statement_.bindNoCopy(++column_, static_cast<const void*>(value.data()),
                          static_cast<int>(value.size()));
    return *this;
  }
  Row& Blob(const Digest& digest) {
    statement_.bindNoCopy(++column_, static_cast<const void*>(digest.bytes.data()),
                          static_cast<int>(digest.bytes.size()));
    return *this;
  }
  Row& Blob(const std::optional<Digest>& digest) { return digest ? Blob(*digest) : Null(); }
  void Run() { statement_.exec(); }

 private:
  SQLite::Statement& statement_;
  int column_ = 0;
};

void InsertRun(SQLite::Database& database, const RunInfo& run) {
  SQLite::Statement insert(
      database, "INSERT INTO run VALUES (1,?,?,?,?,?,?,?,?,?,?,?,?,?,NULL,'running','')");
  Row(insert)
      .Text(run.tool_version)
      .Text(run.spec_json)
      .Text(run.spec_folder)
      .Text(run.command_line)
      .Text(run.policy)
      .Text(run.record_level)
      .Text(run.device)
      .Int(run.stages)
      .Int(run.in_flight)
      .Text(run.partition)
      .Int(run.subnets_planned)
      .Blob(run.dataset_digest)
      .Text(run.started_utc)
      .Run();
}

void InsertEnvironment(SQLite::Database& database, std::span<const EnvironmentRow> environment) {
  SQLite::Statement insert(database, "INSERT INTO environment VALUES (?,?)");
  for (const EnvironmentRow& row : environment) Row(insert).Text(row.key).Text(row.value).Run();
}

void InsertLayers(SQLite::Database& database, std::span<const LayerRow> layers) {
  SQLite::Statement insert(database, "INSERT INTO layers VALUES (?,?,?,?,?,?,?)");
  for (const LayerRow& row : layers) {
    Row(insert)
        .Int(row.layer)
        .Text(row.name)
        .Int(row.position)
        .Int(row.candidate)
        .Text(row.op)
        .Int(row.versioned ? 1 : 0)
        .Blob(row.initial_digest)
        .Run();
  }
}

// The head rows are committed in rollback mode, so that the file itself says what it is even where
// a writer is killed before its first checkpoint.
Status WriteHead(SQLite::Database& database, const fs::path& path, const RunInfo& run,
                 std::span<const EnvironmentRow> environment, std::span<const LayerRow> layers) {
  database.exec(fmt::format("PRAGMA application_id = {}", kApplicationId));
  database.exec(fmt::format("PRAGMA user_version = {}", kSchemaVersion));
  Transaction transaction(database, "BEGIN IMMEDIATE");
  database.exec(kCreateSchemaSql);
  InsertRun(database, run);
  InsertEnvironment(database, environment);
  InsertLayers(database, layers);
  transaction.Commit();
  const std::string mode = database.execAndGet("PRAGMA journal_mode = WAL").getString();
  if (mode == "wal") return {};
  return Failed(fmt::format("cannot write {}: its file system has no shared memory for SQLite's "
                            "write-ahead log",
                            path.string()),
                "record to a local disk");
}

bool IsLock(int code) {
  return (code & 0xff) == SQLITE_BUSY || (code & 0xff) == SQLITE_LOCKED;
}

// Takes an old record out of WAL mode, which only works while no other process has it open.
Status Retire(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return {};
  try {
    SQLite::Database database(path.string(), SQLite::OPEN_READWRITE);
    database.execAndGet("PRAGMA journal_mode = DELETE");
  } catch (const SQLite::Exception& exception) {
    if (IsLock(exception.getErrorCode())) {
      return Failed(
          fmt::format("{} is in use: another process has this record open", path.string()),
          "wait until that process ends, or choose another path");
    }
    // Damaged in another way: it is about to be replaced anyway.
  }
  return {};
}

// Accesses per statement: a statement costs as much as several of its rows.
constexpr std::size_t kAccessGroup = 16;

std::string InsertAccessesSql(std::size_t rows) {
  std::string sql = "INSERT INTO accesses VALUES ";
  for (std::size_t i = 0; i < rows; ++i) sql += i == 0 ? "(?,?,?,?,?,?,?)" : ",(?,?,?,?,?,?,?)";
  return sql;
}

// The statements that a run uses again and again.
struct Statements {
  explicit Statements(SQLite::Database& database)
      : subnet(database, "INSERT INTO subnets VALUES (?,?,?,?,?,?)"),
        access(database, InsertAccessesSql(1)),
        access_group(database, InsertAccessesSql(kAccessGroup)),
        activity(database, "INSERT INTO activity VALUES (?,?,?,?,?,?)"),
        activation(database, "INSERT INTO activations VALUES (?,?,?,?)") {}

  SQLite::Statement subnet, access, access_group, activity, activation;
};

class SqliteWriter final : public RecordWriter {
 public:
  SqliteWriter(fs::path path, DatabasePointer database, std::span<const LayerRow> layers)
      : path_(std::move(path)), database_(std::move(database)), statements_(*database_) {
    for (const LayerRow& layer : layers) layers_.insert(layer.layer);
  }

  Status WriteSubnets(std::span<const SubnetRow> subnets) override;
  Status WriteEvaluations(std::span<const EvaluationRow> evaluations) override;
  Status Close(RunStatus status, const std::string& detail) override;

 private:
  template <typename Body>
  Status InTransaction(const Body& body) {
    VERBATIM_CHECK(database_ != nullptr, "the record {} is closed", path_.string());
    std::optional<Transaction> transaction;  // rolled back once the error has been looked at
    return AtSqliteBoundary(path_, Doing::kWriting, database_, [&]() -> Status {
      transaction.emplace(*database_, "BEGIN IMMEDIATE");
      body();
      transaction->Commit();
      return {};
    });
  }
  void InsertSubnet(const SubnetRow& subnet);
  void InsertAccesses(std::int64_t seq, std::span<const AccessRow> accesses);
  Status WriteEnd(const std::string& status, const std::string& detail);
  Status LeaveWalMode();

  fs::path path_;
  DatabasePointer database_;
  std::optional<Statements> statements_;
  std::unordered_set<std::int32_t> layers_;
};

Status SqliteWriter::WriteSubnets(std::span<const SubnetRow> subnets) {
  // Rows appended in order of their keys fill their pages.
  std::vector<const SubnetRow*> in_order;
  for (const SubnetRow& subnet : subnets) in_order.push_back(&subnet);
  std::sort(in_order.begin(), in_order.end(),
            [](const SubnetRow* a, const SubnetRow* b) { return a->seq < b->seq; });
  return InTransaction([&] {
    for (const SubnetRow* subnet : in_order) InsertSubnet(*subnet);
  });
}

void SqliteWriter::InsertSubnet(const SubnetRow& subnet) {
  VERBATIM_CHECK(0 <= subnet.seq && subnet.seq <= kSeqMax, "seq {}", subnet.seq);
  const std::string choices = EncodeChoices(subnet.choices);
  const std::string samples = EncodeSamples(subnet.samples);
  Row(statements_->subnet)
      .Int(subnet.seq)
      .Text(choices)
      .Blob(samples)
      .Blob(subnet.batch_digest)
      .Int(subnet.loss_bits)
      .Blob(subnet.content_digest)
      .Run();
  InsertAccesses(subnet.seq, subnet.accesses);
  for (const ActivityRow& row : subnet.activities) {
    Row(statements_->activity)
        .Int(subnet.seq)
        .Int(row.stage)
        .Int(row.microbatch)
        .Int(static_cast<int>(row.phase))
        .Int(row.begin_ns)
        .Int(row.end_ns - row.begin_ns)
        .Run();
  }
  for (const ActivationRow& row : subnet.activations) {
    Row(statements_->activation)
        .Int(subnet.seq)
        .Int(row.microbatch)
        .Int(row.position)
        .Blob(row.digest)
        .Run();
  }
}

void BindAccess(Row& row, std::int64_t seq, const AccessRow& access) {
  row.Int(seq * kAccessKeyLayers + access.layer).Int(access.read_seq);
  access.base_seq == access.read_seq ? row.Null() : row.Int(access.base_seq);
  row.Int(access.stage).Blob(access.weights).Blob(access.optimizer_state).Blob(access.gradients);
}

void SqliteWriter::InsertAccesses(std::int64_t seq, std::span<const AccessRow> accesses) {
  while (!accesses.empty()) {
    const bool is_group = accesses.size() >= kAccessGroup;
    const std::size_t count = is_group ? kAccessGroup : 1;
    Row row(is_group ? statements_->access_group : statements_->access);
    for (const AccessRow& access : accesses.first(count)) {
      VERBATIM_CHECK(layers_.contains(access.layer),
                     "subnet {} used layer {}, which is not in the record", seq, access.layer);
      BindAccess(row, seq, access);
    }
    row.Run();
    accesses = accesses.subspan(count);
  }
}

Status SqliteWriter::WriteEvaluations(std::span<const EvaluationRow> evaluations) {
  return InTransaction([&] {
    SQLite::Statement insert(*database_, "INSERT INTO evaluations VALUES (?,?,?,?)");
    for (const EvaluationRow& row : evaluations) {
      const std::string choices = EncodeChoices(row.choices);
      Row(insert).Int(row.index).Text(choices).Int(row.correct).Int(row.total).Run();
    }
  });
}

Status SqliteWriter::Close(RunStatus status, const std::string& detail) {
  Status ended = WriteEnd(ToString(status), detail);
  statements_.reset();
  Status left_wal = LeaveWalMode();
  database_.reset();
  return ended ? left_wal : ended;
}

Status SqliteWriter::WriteEnd(const std::string& status, const std::string& detail) {
  VERBATIM_CHECK(database_ != nullptr, "the record {} is closed", path_.string());
  return AtSqliteBoundary(path_, Doing::kWriting, database_, [&]() -> Status {
    // This commit takes all before it to the disk, even where a reader keeps the WAL in use.
    database_->exec("PRAGMA synchronous = FULL");
    const std::string now = UtcNow();
    SQLite::Statement update(*database_,
                             "UPDATE run SET status = ?, status_detail = ?, ended_utc = ?");
    Row(update).Text(status).Text(detail).Text(now).Run();
    return {};
  });
}

Status SqliteWriter::LeaveWalMode() {
  try {
    database_->execAndGet("PRAGMA journal_mode = DELETE");
  } catch (const SQLite::Exception& exception) {
    const int code = exception.getErrorCode();
    if (IsLock(code)) return {};  // somebody is reading: the record stays in WAL mode, and whole
    return tl::unexpected(TranslateSqliteError(
        code, exception.what(), SystemErrorOf(database_.get()), path_, Doing::kWriting));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<RecordWriter>> RecordWriter::Create(
    const fs::path& path, const RunInfo& run, std::span<const EnvironmentRow> environment,
    std::span<const LayerRow> layers, bool overwrite, std::int32_t busy_timeout_ms) {
  ASSIGN_OR_RETURN(const fs::path destination, CheckDestination(path, overwrite));
  DraftFile draft(destination);
  DatabasePointer database;
  const auto at_boundary = [&](const auto& body) {
    return AtSqliteBoundary(destination, Doing::kWriting, database, body);
  };
  RETURN_IF_ERROR(at_boundary([&]() -> Status {
    database = std::make_unique<SQLite::Database>(draft.path().string(),
                                                  SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    return WriteHead(*database, destination, run, environment, layers);
  }));
  database.reset();
  RETURN_IF_ERROR(Retire(destination));
  RETURN_IF_ERROR(draft.Publish(overwrite));
  return at_boundary([&]() -> Result<std::unique_ptr<RecordWriter>> {
    database = std::make_unique<SQLite::Database>(
        destination.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_NOMUTEX, busy_timeout_ms);
    // Foreign keys hold by construction (a subnet's row comes before its others, and layers are
    // checked); to have SQLite look up both again for each access would cost half as much again.
    database->exec("PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = OFF");
    return std::make_unique<SqliteWriter>(destination, std::move(database), layers);
  });
}

}  // namespace verbatim
