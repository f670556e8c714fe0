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
#include "store/head_rows.h"
#include "store/insert_row.h"
#include "store/packed_rows.h"
#include "store/reader.h"
#include "store/record_file.h"
#include "store/schema.h"
#include "store/seal.h"
#include "store/sqlite_boundary.h"
#include "store/values.h"
#include "store/writer_lock.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;
using DatabasePointer = std::unique_ptr<SQLite::Database>;

constexpr std::int64_t kWalBytesMax = 4 << 20;

// The head rows are committed in rollback mode, so that the file itself says what it is even where
// a writer is killed before its first checkpoint.
Status WriteHead(SQLite::Database& database, const fs::path& path, const RecordState& state) {
  const bool is_large = state.run.subnets_planned >= kLargePageSubnets;
  database.exec(fmt::format("PRAGMA page_size = {}", is_large ? kLargePageBytes : kSmallPageBytes));
  database.exec(fmt::format("PRAGMA application_id = {}", kApplicationId));
  database.exec(fmt::format("PRAGMA user_version = {}", SchemaVersion(state.run.kind)));
  Transaction transaction(database, "BEGIN IMMEDIATE");
  CreateRecord(database, state);
  transaction.Commit();
  if (SetJournalMode(database, "WAL") == "wal") return {};
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
  const auto lock = WriterLock::Take(path);
  if (!lock && lock.error().kind == ErrorKind::kFailed) return tl::unexpected(lock.error());
  try {
    SQLite::Database database(path.string(), SQLite::OPEN_READWRITE);
    SetJournalMode(database, "DELETE");
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

// As a reader gives them, for the seals are over rows in order.
void SortForSeals(RecordState& state) {
  std::sort(state.environment.begin(), state.environment.end(),
            [](const EnvironmentRow& a, const EnvironmentRow& b) { return a.key < b.key; });
  std::sort(state.layers.begin(), state.layers.end(),
            [](const LayerRow& a, const LayerRow& b) { return a.layer < b.layer; });
}

DatabasePointer OpenForWriting(const fs::path& path, std::int32_t busy_timeout_ms) {
  auto database = std::make_unique<SQLite::Database>(
      path.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_NOMUTEX, busy_timeout_ms);
  database->exec("PRAGMA trusted_schema = OFF; PRAGMA synchronous = NORMAL");
  const int page_size = database->execAndGet("PRAGMA page_size").getInt();
  database->exec(fmt::format("PRAGMA wal_autocheckpoint = {}", kWalBytesMax / page_size));
  return database;
}

// The statements that a run uses again and again.
struct Statements {
  Statements(SQLite::Database& database, RunKind kind)
      : subnet(database, "INSERT INTO subnets VALUES (?,?,?,?,?,?,?,?,?,?)"),
        node(database, "INSERT INTO tree VALUES (?,?,?)") {
    if (kind == RunKind::kSteps) step.emplace(database, "INSERT INTO steps VALUES (?,?,?)");
  }

  SQLite::Statement subnet, node;
  std::optional<SQLite::Statement> step;
};

class SqliteWriter final : public RecordWriter {
 public:
  SqliteWriter(fs::path path, std::unique_ptr<WriterLock> lock, DatabasePointer database,
               RecordState state)
      : path_(std::move(path)),
        lock_(std::move(lock)),
        database_(std::move(database)),
        state_(std::move(state)) {
    statements_.emplace(*database_, state_.run.kind);
    for (const LayerRow& layer : state_.layers) layers_.insert(layer.layer);
  }

  Status WriteSubnets(std::span<const SubnetRow> subnets) override;
  Status WriteCheckpoint(const CheckpointRow& checkpoint, std::int64_t keep) override;
  Head CurrentHead() const override { return HeadOf(state_); }
  Status Close(RunStatus status, const std::string& detail,
               std::span<const EvaluationRow> evaluations) override;

 private:
  template <typename Body>
  Status InTransaction(const Body& body) {
    VERBATIM_CHECK(database_ != nullptr, "the record {} is closed", path_.string());
    std::optional<Transaction> transaction;  // rolled back once the error has been looked at
    return AtSqliteBoundary(path_, Doing::kWriting, database_, [&]() -> Status {
      transaction.emplace(*database_, "BEGIN IMMEDIATE");
      body();
      transaction->Commit();
      return lock_->CheckStillAt(path_);
    });
  }
  // Likewise, and the commit takes all before it to the disk, even where a reader keeps the WAL in
  // use.
  template <typename Body>
  Status InDurableTransaction(const Body& body) {
    VERBATIM_CHECK(database_ != nullptr, "the record {} is closed", path_.string());
    RETURN_IF_ERROR(SetSynchronous("FULL"));
    RETURN_IF_ERROR(InTransaction(body));
    return SetSynchronous("NORMAL");
  }
  Status SetSynchronous(const char* mode);
  void InsertSubnet(const SubnetRow& subnet);
  void InsertStep(std::int64_t seq, const StepFacts& step);
  Status WriteEnd(RunStatus status, const std::string& detail,
                  std::span<const EvaluationRow> evaluations);
  Status LeaveWalMode();

  fs::path path_;
  std::unique_ptr<WriterLock> lock_;  // before the database: released after it is closed
  DatabasePointer database_;
  std::optional<Statements> statements_;
  RecordState state_;  // what is committed
  std::unordered_set<std::int32_t> layers_;
};

Status SqliteWriter::SetSynchronous(const char* mode) {
  return AtSqliteBoundary(path_, Doing::kWriting, database_, [&]() -> Status {
    database_->exec(fmt::format("PRAGMA synchronous = {}", mode));
    return {};
  });
}

Status SqliteWriter::WriteSubnets(std::span<const SubnetRow> subnets) {
  // Rows appended in order of their keys fill their pages.
  std::vector<const SubnetRow*> in_order;
  for (const SubnetRow& subnet : subnets) in_order.push_back(&subnet);
  std::sort(in_order.begin(), in_order.end(),
            [](const SubnetRow* a, const SubnetRow* b) { return a->seq < b->seq; });
  RecordTree tree = state_.tree;
  const auto insert_node = [&](int level, std::int64_t index, const TreeNode& node) {
    InsertRow(statements_->node)
        .Int(NodeKey(level, index))
        .Blob(node.content)
        .Blob(node.layout)
        .Run();
  };
  RETURN_IF_ERROR(InTransaction([&] {
    for (const SubnetRow* subnet : in_order) {
      InsertSubnet(*subnet);
      tree.Add(subnet->seq, {subnet->content_leaf, subnet->layout_leaf}, insert_node);
    }
  }));
  state_.tree = std::move(tree);
  return {};
}

void SqliteWriter::InsertSubnet(const SubnetRow& subnet) {
  VERBATIM_CHECK(0 <= subnet.seq && subnet.seq <= kSeqMax, "seq {}", subnet.seq);
  for (const AccessRow& access : subnet.accesses) {
    VERBATIM_CHECK(layers_.contains(access.layer),
                   "subnet {} used layer {}, which is not in the record", subnet.seq, access.layer);
  }
  const bool is_step = state_.run.kind == RunKind::kSteps;
  VERBATIM_CHECK(subnet.step.has_value() == is_step, "subnet {}", subnet.seq);
  const std::string choices = EncodeChoices(subnet.choices);
  const std::string samples = EncodeSamples(subnet.samples);
  const std::string accesses = PackAccesses(subnet.seq, subnet.accesses);
  const auto activations = PackActivations(subnet.activations);
  const auto activity = PackActivity(subnet.activities);
  InsertRow(statements_->subnet)
      .Int(subnet.seq)
      .Text(choices)
      .Blob(samples)
      .Blob(subnet.batch_digest)
      .Int(subnet.loss_bits)
      .Blob(subnet.content_leaf)
      .Blob(subnet.layout_leaf)
      .Blob(accesses)
      .Blob(activations)
      .Blob(activity)
      .Run();
  if (is_step) InsertStep(subnet.seq, *subnet.step);
}

void SqliteWriter::InsertStep(std::int64_t seq, const StepFacts& step) {
  VERBATIM_CHECK(0 <= step.step && step.step <= kStepMax, "step {}", step.step);
  const std::string facts = EncodeFacts(step);
  InsertRow(*statements_->step).Int(seq).Int(step.step).Text(facts).Run();
}

Status SqliteWriter::WriteCheckpoint(const CheckpointRow& checkpoint, std::int64_t keep) {
  VERBATIM_CHECK(keep >= 1 && 0 <= checkpoint.cut && checkpoint.cut <= kSeqMax,
                 "checkpoint at {}, of which {} are kept", checkpoint.cut, keep);
  VERBATIM_CHECK(checkpoint.layers.size() == state_.layers.size(), "checkpoint of {} layers",
                 checkpoint.layers.size());
  const std::string manifest = PackManifest(checkpoint.layers);
  const Hash256 seal = CheckpointSeal(checkpoint);
  return InDurableTransaction([&] {
    SQLite::Statement insert(*database_, "INSERT OR REPLACE INTO checkpoints VALUES (?,?,?,?)");
    InsertRow(insert)
        .Int(checkpoint.cut)
        .Text(checkpoint.created_utc)
        .Blob(manifest)
        .Blob(seal)
        .Run();
    SQLite::Statement retire(*database_,
                             "DELETE FROM checkpoints WHERE cut NOT IN"
                             " (SELECT cut FROM checkpoints ORDER BY cut DESC LIMIT ?)");
    InsertRow(retire).Int(keep).Run();
  });
}

Status SqliteWriter::Close(RunStatus status, const std::string& detail,
                           std::span<const EvaluationRow> evaluations) {
  Status ended = WriteEnd(status, detail, evaluations);
  statements_.reset();
  Status left_wal = LeaveWalMode();
  database_.reset();
  lock_.reset();
  return ended ? left_wal : ended;
}

Status SqliteWriter::WriteEnd(RunStatus status, const std::string& detail,
                              std::span<const EvaluationRow> evaluations) {
  RecordState state = state_;
  state.evaluations.insert(state.evaluations.end(), evaluations.begin(), evaluations.end());
  std::sort(state.evaluations.begin(), state.evaluations.end(),
            [](const EvaluationRow& a, const EvaluationRow& b) { return a.index < b.index; });
  state.run.status = status;
  state.run.status_detail = detail;
  state.run.ended_utc = UtcNow();
  RETURN_IF_ERROR(InDurableTransaction([&] {
    InsertEvaluations(*database_, evaluations);
    UpdateEnd(*database_, state);
  }));
  state_ = std::move(state);
  return {};
}

Status SqliteWriter::LeaveWalMode() {
  try {
    SetJournalMode(*database_, "DELETE");
  } catch (const SQLite::Exception& exception) {
    const int code = exception.getErrorCode();
    if (IsLock(code)) return {};  // somebody is reading: the record stays in WAL mode, and whole
    return tl::unexpected(TranslateSqliteError(
        code, exception.what(), SystemErrorOf(database_.get()), path_, Doing::kWriting));
  }
  return {};
}

Status CheckStillAsSeen(const fs::path& path, const RecordReader& reader, std::int64_t subnets) {
  ASSIGN_OR_RETURN(const RunInfo run, reader.Run());
  ASSIGN_OR_RETURN(const std::int64_t now, reader.SubnetCount());
  if (run.status != RunStatus::kComplete && now == subnets) return {};
  return Failed(
      fmt::format("{} was written by another process meanwhile: its run has {} subnets now and is "
                  "{}",
                  path.string(), now, ToString(run.status)),
      "try again");
}

/// Reads a record that is to be gone on with, whose writer's lock is held.
Result<RecordState> ReadForResumption(const fs::path& path, const ResumptionRow& resumption,
                                      std::optional<std::int64_t> subnets_seen) {
  ASSIGN_OR_RETURN(const auto reader, RecordReader::Open(path));
  if (reader->Kind() == RunKind::kSteps) {
    return UsageError(fmt::format("{} is a step run, which is not gone on with", path.string()),
                      "let its trainer record to another file");
  }
  ASSIGN_OR_RETURN(const auto problems, reader->SchemaProblems());
  if (!problems.empty()) {
    return BadInput(fmt::format("{} is damaged: {}", path.string(), problems.front()),
                    "restore it from a copy");
  }
  if (subnets_seen) RETURN_IF_ERROR(CheckStillAsSeen(path, *reader, *subnets_seen));
  ASSIGN_OR_RETURN(RecordState state, ReadState(*reader));
  state.run.status = RunStatus::kRunning;
  state.run.status_detail.clear();
  state.run.ended_utc.clear();
  state.resumptions.push_back(resumption);
  state.resumptions.back().resumption = std::ssize(state.resumptions);
  return state;
}

}  // namespace

Result<std::unique_ptr<RecordWriter>> RecordWriter::Create(
    const fs::path& path, const RunInfo& run, std::span<const EnvironmentRow> environment,
    std::span<const LayerRow> layers, bool overwrite, std::int32_t busy_timeout_ms) {
  ASSIGN_OR_RETURN(const fs::path destination, CheckDestination(path, overwrite));
  RecordState state;
  state.run = run;
  state.run.status = RunStatus::kRunning;
  state.run.ended_utc = state.run.status_detail = "";
  state.environment.assign(environment.begin(), environment.end());
  state.layers.assign(layers.begin(), layers.end());
  SortForSeals(state);
  DraftFile draft(destination);
  DatabasePointer database;
  const auto at_boundary = [&](const auto& body) {
    return AtSqliteBoundary(destination, Doing::kWriting, database, body);
  };
  RETURN_IF_ERROR(at_boundary([&]() -> Status {
    database = std::make_unique<SQLite::Database>(draft.path().string(),
                                                  SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    return WriteHead(*database, destination, state);
  }));
  database.reset();
  ASSIGN_OR_RETURN(auto lock, WriterLock::Take(draft.path()));
  RETURN_IF_ERROR(Retire(destination));
  RETURN_IF_ERROR(draft.Publish(overwrite));
  return at_boundary([&]() -> Result<std::unique_ptr<RecordWriter>> {
    database = OpenForWriting(destination, busy_timeout_ms);
    return std::make_unique<SqliteWriter>(destination, std::move(lock), std::move(database),
                                          std::move(state));
  });
}

Result<std::unique_ptr<RecordWriter>> RecordWriter::Reopen(const fs::path& path,
                                                           const ResumptionRow& resumption,
                                                           std::optional<std::int64_t> subnets_seen,
                                                           std::int32_t busy_timeout_ms) {
  RETURN_IF_ERROR(ReadSqliteHeader(path));
  ASSIGN_OR_RETURN(auto lock, WriterLock::Take(path));
  ASSIGN_OR_RETURN(RecordState state, ReadForResumption(path, resumption, subnets_seen));
  DatabasePointer database;
  return AtSqliteBoundary(path, Doing::kWriting, database,
                          [&]() -> Result<std::unique_ptr<RecordWriter>> {
                            database = OpenForWriting(path, busy_timeout_ms);
                            SetJournalMode(*database, "WAL");
                            Transaction transaction(*database, "BEGIN IMMEDIATE");
                            InsertResumption(*database, state);
                            transaction.Commit();
                            return std::make_unique<SqliteWriter>(
                                path, std::move(lock), std::move(database), std::move(state));
                          });
}

}  // namespace verbatim
