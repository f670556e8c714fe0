#include "store/subnet_cursor.h"

#include <fmt/format.h>

#include <limits>
#include <optional>

#include "store/format.h"
#include "store/sqlite_boundary.h"

namespace verbatim {

const SeqBounds kEverySeq{std::numeric_limits<std::int64_t>::min(),
                          std::numeric_limits<std::int64_t>::max()};

tl::unexpected<Error> Damaged(const std::filesystem::path& path, const std::string& problem) {
  return BadInput(fmt::format("{} is damaged: {}", path.string(), problem),
                  "restore it from a copy");
}

void ReadAccess(RowReader& row, std::int64_t key, AccessRow& access) {
  access.layer = static_cast<std::int32_t>(key & (kAccessKeyLayers - 1));
  access.read_seq = row.Version();
  access.base_seq = row.VersionOr(access.read_seq);
  access.stage = row.Index();
  access.weights = row.OptionalBlob16();
  access.optimizer_state = row.OptionalBlob16();
  access.gradients = row.OptionalBlob16();
}

namespace {

namespace fs = std::filesystem;
using DatabasePointer = std::unique_ptr<SQLite::Database>;

void ReadSubnet(RowReader& row, SubnetRow& subnet) {
  subnet.seq = row.Int(0, kSeqMax);
  row.Choices(subnet.choices);
  row.Samples(subnet.samples);
  subnet.batch_digest = row.Blob16();
  subnet.loss_bits = static_cast<std::uint32_t>(row.Int(0, 0xffffffff));
  subnet.content_digest = row.Blob16();
}

void ReadActivation(RowReader& row, std::int64_t /*seq*/, ActivationRow& activation) {
  activation.microbatch = row.Index();
  activation.position = row.Index();
  activation.digest = row.Blob16();
}

void ReadActivity(RowReader& row, std::int64_t /*seq*/, ActivityRow& activity) {
  activity.stage = row.Index();
  activity.microbatch = row.Index();
  activity.phase = static_cast<Phase>(row.Int(0, 2));
  activity.begin_ns = row.Int(-kTimeMaxNs, kTimeMaxNs);
  activity.end_ns = activity.begin_ns + row.Int(-kTimeMaxNs, kTimeMaxNs);
}

// What a table of rows that belong to subnets is called and how it is read. The SQL selects a
// number first whose bits from `seq_shift` on are seq, and orders by its key; ?1 and ?2 are the
// first and last seq.
template <typename Row>
struct ChildTable {
  const char* name;
  int key_columns;
  int seq_shift;
  const char* sql;
  void (*read)(RowReader&, std::int64_t first, Row&);
};

constexpr ChildTable<AccessRow> kAccesses = {
    kAccessTable, RowReader::kAccessKey, kAccessLayerBits,
    "SELECT access, read_seq, base_seq, stage, weights, optimizer_state, gradients"
    " FROM accesses WHERE access BETWEEN max(?1, -1 << 43) << 20"
    " AND min(?2, (1 << 43) - 1) << 20 | 1048575 ORDER BY access",
    ReadAccess};
constexpr ChildTable<ActivationRow> kActivations = {
    "activations", 3, 0,
    "SELECT seq, microbatch, position, digest FROM activations"
    " WHERE seq BETWEEN ?1 AND ?2 ORDER BY seq, microbatch, position",
    ReadActivation};
constexpr ChildTable<ActivityRow> kActivity = {
    "activity", 5, 0,
    "SELECT seq, stage, microbatch, phase, begin_ns, duration_ns FROM activity"
    " WHERE seq BETWEEN ?1 AND ?2 ORDER BY seq, stage, microbatch, phase, begin_ns",
    ReadActivity};

// A forward cursor over such a table; always stands on the next row not yet taken.
template <typename Row>
class ChildCursor {
 public:
  ChildCursor(SQLite::Database& database, const fs::path& path, const ChildTable<Row>& table,
              const SeqBounds& bounds)
      : path_(path), table_(table), query_(database, table.sql) {
    query_.Bind(1, bounds.first);
    query_.Bind(2, bounds.last);
    has_row_ = query_.Step();
  }

  // Puts the rows of `seq` into `rows`. Called with ascending seq.
  Status Take(std::int64_t seq, std::vector<Row>& rows) {
    rows.clear();
    while (has_row_) {
      RowReader reader(query_, table_.name, table_.key_columns);
      const std::int64_t first = reader.Int(0, std::numeric_limits<std::int64_t>::max());
      const std::int64_t row_seq = first >> table_.seq_shift;
      if (!reader.problem() && row_seq > seq) return {};
      if (!reader.problem() && row_seq < seq) return Orphan(row_seq);
      table_.read(reader, first, rows.emplace_back());
      if (reader.problem()) return Damaged(path_, *reader.problem());
      has_row_ = query_.Step();
    }
    return {};
  }

  // After the last subnet: no row may be left.
  Status Finish() {
    if (!has_row_) return {};
    return Orphan(sqlite3_column_int64(query_.statement(), 0) >> table_.seq_shift);
  }

 private:
  Status Orphan(std::int64_t seq) {
    return Damaged(
        path_, fmt::format("table {} has rows of seq {}, table subnets has not", table_.name, seq));
  }

  const fs::path& path_;
  const ChildTable<Row>& table_;
  Query query_;
  bool has_row_ = false;
};

class SqliteSubnetCursor final : public SubnetCursor {
 public:
  SqliteSubnetCursor(const fs::path& path, const DatabasePointer& database, const SeqBounds& bounds,
                     const ReadOptions& options);
  Result<const SubnetRow*> Next() override {
    return AtSqliteBoundary(path_, Doing::kReading, database_, [&] { return Advance(); });
  }

 private:
  Result<const SubnetRow*> Advance();
  Status TakeChildren();
  Status Finish();

  const fs::path& path_;
  const DatabasePointer& database_;
  // One snapshot for all queries, while a live run adds rows.
  Transaction snapshot_;
  Query subnets_;
  std::optional<ChildCursor<AccessRow>> accesses_;
  std::optional<ChildCursor<ActivationRow>> activations_;
  std::optional<ChildCursor<ActivityRow>> activity_;
  SubnetRow row_;
  bool is_done_ = false;
};

SqliteSubnetCursor::SqliteSubnetCursor(const fs::path& path, const DatabasePointer& database,
                                       const SeqBounds& bounds, const ReadOptions& options)
    : path_(path),
      database_(database),
      snapshot_(*database, "BEGIN"),
      subnets_(*database,
               "SELECT seq, choices, samples, batch_digest, loss_bits, content_digest FROM subnets"
               " WHERE seq BETWEEN ? AND ? ORDER BY seq") {
  subnets_.Bind(1, bounds.first);
  subnets_.Bind(2, bounds.last);
  if (options.accesses) accesses_.emplace(*database, path_, kAccesses, bounds);
  if (options.activations) activations_.emplace(*database, path_, kActivations, bounds);
  if (options.activities) activity_.emplace(*database, path_, kActivity, bounds);
}

Result<const SubnetRow*> SqliteSubnetCursor::Advance() {
  if (is_done_) return nullptr;
  is_done_ = !subnets_.Step();
  if (is_done_) {
    RETURN_IF_ERROR(Finish());
    return nullptr;
  }
  RowReader reader(subnets_, "subnets", 1);
  ReadSubnet(reader, row_);
  if (reader.problem()) return Damaged(path_, *reader.problem());
  RETURN_IF_ERROR(TakeChildren());
  return &row_;
}

Status SqliteSubnetCursor::TakeChildren() {
  if (accesses_) RETURN_IF_ERROR(accesses_->Take(row_.seq, row_.accesses));
  if (activations_) RETURN_IF_ERROR(activations_->Take(row_.seq, row_.activations));
  if (activity_) RETURN_IF_ERROR(activity_->Take(row_.seq, row_.activities));
  return {};
}

Status SqliteSubnetCursor::Finish() {
  if (accesses_) RETURN_IF_ERROR(accesses_->Finish());
  if (activations_) RETURN_IF_ERROR(activations_->Finish());
  if (activity_) RETURN_IF_ERROR(activity_->Finish());
  return {};
}

}  // namespace

Result<std::unique_ptr<SubnetCursor>> OpenSubnets(const fs::path& path,
                                                  const DatabasePointer& database,
                                                  const SeqBounds& bounds,
                                                  const ReadOptions& options) {
  return AtSqliteBoundary(
      path, Doing::kReading, database, [&]() -> Result<std::unique_ptr<SubnetCursor>> {
        return std::make_unique<SqliteSubnetCursor>(path, database, bounds, options);
      });
}

}  // namespace verbatim
