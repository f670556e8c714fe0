#include "verify/diff_side.h"

#include <fmt/format.h>

#include "verify/report.h"
#include "verify/run_words.h"
#include "verify/text.h"

namespace verbatim {
namespace {

Check RecordCheck(const DiffSide& side) {
  const Verdict& examined = side.verdict();
  Check check = PassedCheck(side.check());
  check.detail =
      fmt::format("{}: {}, {}", side.path(), CountRows(examined.counts.subnets, examined.run.kind),
                  FormatCount(examined.counts.accesses, "access", "accesses"));
  const std::string incomplete = IncompleteText(examined.run, examined.counts.subnets);
  if (!incomplete.empty()) check.detail += "; " + incomplete;
  // No difference between the two by itself, but the reader should know.
  if (examined.counts.violations > 0) {
    check.detail += fmt::format("; {} of causality",
                                FormatCount(examined.counts.violations, "violation", "violations"));
  }
  for (const Check& finding : examined.checks) {
    if (!finding.damage) continue;
    for (const std::string& problem : finding.problems) {
      AddDamage(check, fmt::format("{}: {}", finding.name, problem));
    }
  }
  return check;
}

}  // namespace

void DiffSide::Open() {
  if (table() == nullptr) return;
  auto cursor = reader_.Subnets(examination_.options());
  if (cursor) {
    cursor_ = *std::move(cursor);
  } else {
    examination_.Stop(cursor.error());
  }
}

const SubnetRow* DiffSide::Next() {
  if (cursor_ == nullptr) return nullptr;
  const auto row = cursor_->Next();
  if (row && *row != nullptr) {
    examination_.Visit(**row);
    return *row;
  }
  if (!row) examination_.Stop(row.error());
  cursor_.reset();
  return nullptr;
}

void AddRecords(DiffSide& a, DiffSide& b, Verdict& verdict) {
  a.Finish();
  b.Finish();
  verdict.kind = VerdictKind::kDiff;
  verdict.record = a.path();
  verdict.reference = b.path();
  verdict.spec_name = a.verdict().spec_name;
  verdict.run = a.run();
  verdict.counts = a.verdict().counts;
  for (const DiffSide* side : {&a, &b}) {
    verdict.checks.push_back(RecordCheck(*side));
    verdict.damaged |= side->verdict().damaged;
    if (!verdict.first_damaged_subnet) {
      verdict.first_damaged_subnet = side->verdict().first_damaged_subnet;
    }
  }
}

}  // namespace verbatim
