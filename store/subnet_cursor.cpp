#include "store/subnet_cursor.h"

#include <fmt/format.h>

#include <limits>

#include "store/format.h"
#include "store/packed_rows.h"
#include "store/row_reader.h"
#include "store/sqlite_boundary.h"

namespace verbatim {

const SeqBounds kEverySeq{std::numeric_limits<std::int64_t>::min(),
                          std::numeric_limits<std::int64_t>::max()};

tl::unexpected<Error> Damaged(const std::filesystem::path& path, const std::string& problem) {
  return BadInput(fmt::format("{} is damaged: {}", path.string(), problem),
                  "restore it from a copy");
}

namespace {

namespace fs = std::filesystem;
using DatabasePointer = std::unique_ptr<SQLite::Database>;

constexpr const char* kSelectSql =
    "SELECT seq, choices, samples, batch_digest, loss_bits, content_leaf, layout_leaf, accesses,"
    " activations, activity FROM subnets WHERE seq BETWEEN ? AND ? ORDER BY seq";
constexpr const char* kSelectStepsSql =
    "SELECT seq, choices, samples, batch_digest, loss_bits, content_leaf, layout_leaf, accesses,"
    " activations, activity, step, facts FROM subnets LEFT JOIN steps USING (seq)"
    " WHERE seq BETWEEN ? AND ? ORDER BY seq";

void ReadColumns(RowReader& row, SubnetRow& subnet) {
  subnet.seq = row.Int(0, kSeqMax);
  row.Choices(subnet.choices);
  row.Samples(subnet.samples);
  subnet.batch_digest = row.Blob16();
  subnet.loss_bits = static_cast<std::uint32_t>(row.Int(0, 0xffffffff));
  subnet.content_leaf = row.Blob32();
  subnet.layout_leaf = row.Blob32();
}

void ReadPackedColumns(RowReader& row, const ReadOptions& options, SubnetRow& subnet) {
  const std::string_view accesses = row.Blob();
  if (options.accesses) row.Require(UnpackAccesses(subnet.seq, accesses, subnet.accesses));
  subnet.activations.clear();
  const auto activations = row.OptionalBlob();
  if (activations && options.activations) {
    row.Require(UnpackActivations(*activations, subnet.activations));
  }
  subnet.activities.clear();
  const auto activity = row.OptionalBlob();
  if (activity && options.activities) row.Require(UnpackActivity(*activity, subnet.activities));
}

void ReadStep(RowReader& row, SubnetRow& subnet) {
  row.GoOnWith("steps");
  if (!subnet.step) subnet.step.emplace();
  subnet.step->step = row.Int(0, kStepMax);
  row.Require(DecodeFacts(row.Text(), &*subnet.step));
}

class SqliteSubnetCursor final : public SubnetCursor {
 public:
  SqliteSubnetCursor(const fs::path& path, const DatabasePointer& database, RunKind kind,
                     const SeqBounds& bounds, const ReadOptions& options)
      : path_(path),
        database_(database),
        kind_(kind),
        options_(options),
        snapshot_(*database, "BEGIN"),
        subnets_(*database, kind == RunKind::kSteps ? kSelectStepsSql : kSelectSql) {
    subnets_.Bind(1, bounds.first);
    subnets_.Bind(2, bounds.last);
  }
  Result<const SubnetRow*> Next() override {
    return AtSqliteBoundary(path_, Doing::kReading, database_, [&] { return Advance(); });
  }

 private:
  Result<const SubnetRow*> Advance();

  const fs::path& path_;
  const DatabasePointer& database_;
  const RunKind kind_;
  const ReadOptions options_;
  // One moment for all that is read while the cursor lives, of a record that grows.
  Transaction snapshot_;
  Query subnets_;
  SubnetRow row_;
  bool is_done_ = false;
};

Result<const SubnetRow*> SqliteSubnetCursor::Advance() {
  if (is_done_) return nullptr;
  is_done_ = !subnets_.Step();
  if (is_done_) return nullptr;
  RowReader reader(subnets_, "subnets", 1);
  ReadColumns(reader, row_);
  if (!reader.problem()) ReadPackedColumns(reader, options_, row_);
  if (!reader.problem() && kind_ == RunKind::kSteps) ReadStep(reader, row_);
  if (reader.problem()) return Damaged(path_, *reader.problem());
  return &row_;
}

}  // namespace

Result<std::unique_ptr<SubnetCursor>> OpenSubnets(const fs::path& path,
                                                  const DatabasePointer& database, RunKind kind,
                                                  const SeqBounds& bounds,
                                                  const ReadOptions& options) {
  return AtSqliteBoundary(
      path, Doing::kReading, database, [&]() -> Result<std::unique_ptr<SubnetCursor>> {
        return std::make_unique<SqliteSubnetCursor>(path, database, kind, bounds, options);
      });
}

}  // namespace verbatim
