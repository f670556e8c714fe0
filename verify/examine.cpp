#include "verify/examine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "store/checkpoint_files.h"
#include "verify/checkpoint_check.h"
#include "verify/row_check.h"
#include "verify/seal_check.h"
#include "verify/stream_check.h"
#include "verify/subnet_pass.h"
#include "verify/text.h"
#include "verify/tree_check.h"

namespace verbatim {
namespace {

Check CheckFile(const RecordReader& reader) {
  Check check =
      PassedCheck(kCheckFile, "SQLite's integrity check; tables and views as they were created");
  const auto problems = reader.IntegrityProblems();
  if (!problems) {
    AddDamage(check, problems.error().message);
    return check;
  }
  for (const std::string& problem : *problems) AddDamage(check, problem);
  const auto schema = reader.SchemaProblems();
  if (!schema) {
    AddDamage(check, schema.error().message);
    return check;
  }
  for (const std::string& problem : *schema) AddDamage(check, problem);
  return check;
}

/// Fills verdict.run and, where the recorded spec can be parsed, returns it.
std::optional<Spec> CheckRun(const RecordReader& reader, Verdict& verdict) {
  Check check = PassedCheck(kCheckRun);
  std::optional<Spec> parsed;
  if (auto run = reader.Run()) {
    verdict.run = *std::move(run);
    verdict.counts.subnets_planned = verdict.run.subnets_planned;
    for (std::string& problem : RunProblems(verdict.run)) AddDamage(check, std::move(problem));
    if (auto spec = ParseSpec(verdict.run.spec_json, "the recorded spec")) {
      verdict.spec_name = spec->name;
      parsed = *std::move(spec);
    } else {
      AddDamage(check, spec.error().message);
    }
    check.detail =
        fmt::format("policy {}, {}, level {}", verdict.run.policy,
                    FormatCount(verdict.run.stages, "stage", "stages"), verdict.run.record_level);
  } else {
    AddDamage(check, run.error().message);
  }
  const bool sound = check.outcome == Outcome::kPassed;
  verdict.checks.push_back(std::move(check));
  return sound ? std::move(parsed) : std::nullopt;
}

std::optional<LayerTable> CheckLayers(const RecordReader& reader, const Spec& spec,
                                      Verdict& verdict) {
  Check check = PassedCheck(kCheckLayers);
  std::optional<LayerTable> built;
  auto rows = reader.Layers();
  auto table = rows ? LayerTable::Build(*std::move(rows))
                    : Result<LayerTable>(tl::unexpected(std::move(rows).error()));
  if (!table) {
    AddDamage(check, table.error().message);
  } else if (const auto difference = DifferenceFromSpec(*table, spec)) {
    AddDamage(check, *difference);
  } else {
    check.detail = fmt::format(
        "{} in {}, as the spec lays them out",
        FormatCount(static_cast<std::int64_t>(table->layers().size()), "layer", "layers"),
        FormatCount(table->positions(), "position", "positions"));
    built = *std::move(table);
    built->ReadDelays(spec);
  }
  verdict.checks.push_back(std::move(check));
  return built;
}

Check CheckEvaluations(const RecordReader& reader, const Spec& spec, const LayerTable& table,
                       StreamCheck& stream, Verdict& verdict) {
  Check check = PassedCheck(kCheckEvaluations);
  const auto rows = reader.Evaluations();
  if (!rows) {
    AddDamage(check, rows.error().message);
    return check;
  }
  for (const EvaluationRow& row : *rows) {
    const std::int64_t index = &row - rows->data();
    if (row.index != index) AddDamage(check, fmt::format("evaluation {} is missing", index));
    if (const auto problem = EvaluationProblem(row, table)) {
      AddDamage(check, *problem);
      continue;
    }
    auto difference = stream.CompareEvaluation(row.index, row.choices);
    if (!difference) continue;
    AddProblem(check, difference->cause);
    if (!verdict.first_difference) {
      difference->next_command = fmt::format("verbatim show {}", ShellPath(verdict.record));
      verdict.first_difference = std::move(difference);
    }
  }
  const auto count = static_cast<std::int64_t>(rows->size());
  // They are written together, after the last subnet.
  const bool expected = verdict.run.status == RunStatus::kComplete || count > 0;
  if (expected && count != spec.evaluation.subnets) {
    AddDamage(check, fmt::format("{} recorded, the spec has {}", FormatCount(count),
                                 FormatCount(spec.evaluation.subnets)));
  }
  if (count > 0 && verdict.counts.subnets != verdict.run.subnets_planned) {
    AddDamage(check, fmt::format("{} recorded, but only {} of the {} subnets before them",
                                 FormatCount(count), FormatCount(verdict.counts.subnets),
                                 FormatCount(verdict.run.subnets_planned)));
  }
  check.detail = FormatCount(count, "evaluated subnet", "evaluated subnets");
  return check;
}

/// Names in the order in which a verdict lists its checks.
constexpr std::array kCheckOrder = {
    kCheckFile,      kCheckRun,         kCheckLayers, kCheckSubnets, kCheckStream,
    kCheckCausality, kCheckEvaluations, kCheckTrees,  kCheckSeals,   kCheckCheckpoints};

/// What was not reached is listed too: a reader must not take its absence for a pass.
void AddUnreachedChecks(Verdict& verdict) {
  std::vector<Check> checks;
  for (const char* name : kCheckOrder) {
    const auto found = std::find_if(verdict.checks.begin(), verdict.checks.end(),
                                    [&](const Check& check) { return check.name == name; });
    checks.push_back(found != verdict.checks.end()
                         ? std::move(*found)
                         : Check{name, Outcome::kNotRun, "the record is damaged"});
  }
  verdict.checks = std::move(checks);
}

}  // namespace

class RecordExamination::Parts {
 public:
  Parts(const RecordReader& reader, const std::string& record, FileCheck file_check)
      : reader_(reader), trees_(reader) {
    verdict_.record = record;
    verdict_.checks.push_back(file_check == FileCheck::kRun
                                  ? CheckFile(reader)
                                  : Check{kCheckFile, Outcome::kNotRun, "left out"});
    spec_ = CheckRun(reader, verdict_);
    if (spec_) table_ = CheckLayers(reader, *spec_, verdict_);
    if (!table_) return;
    // Where they cannot be read, the check of the seals says so.
    resumptions_ = reader.Resumptions().value_or(std::vector<ResumptionRow>());
    stream_.emplace(verdict_.run, *spec_, *table_);
    if (file_check == FileCheck::kRun) {
      checkpoints_.emplace(*table_, reader.Checkpoints().value_or(std::vector<CheckpointRow>()),
                           CheckpointFolder(record));
    }
    const RowCheck& rows = rows_.emplace(verdict_.run, resumptions_, RulesOf(*spec_), *table_);
    pass_.emplace(verdict_, *table_,
                  RowExpectation{[&rows](const SubnetRow& subnet) { return rows.Problem(subnet); },
                                 rows.wants_activations(), spec_->training.subnets},
                  *stream_, trees_);
  }

  const LayerTable* table() const { return table_ ? &*table_ : nullptr; }
  const Verdict& verdict() const { return verdict_; }
  SubnetPass& pass() { return *pass_; }
  bool Visit(const SubnetRow& subnet) {
    if (checkpoints_) checkpoints_->Add(subnet);
    return pass_->Visit(subnet);
  }
  Verdict Finish();

 private:
  const RecordReader& reader_;
  Verdict verdict_;
  std::optional<Spec> spec_;
  std::optional<LayerTable> table_;
  std::vector<ResumptionRow> resumptions_;
  TreeCheck trees_;
  std::optional<StreamCheck> stream_;
  std::optional<CheckpointCheck> checkpoints_;  ///< absent: left out
  std::optional<RowCheck> rows_;
  std::optional<SubnetPass> pass_;
};

Verdict RecordExamination::Parts::Finish() {
  if (pass_) {
    for (Check& check : pass_->Finish()) verdict_.checks.push_back(std::move(check));
    verdict_.checks.push_back(CheckEvaluations(reader_, *spec_, *table_, *stream_, verdict_));
    verdict_.checks.push_back(trees_.Finish());
  }
  verdict_.checks.push_back(CheckSeals(reader_));
  if (pass_) {
    if (checkpoints_) {
      verdict_.checks.push_back(checkpoints_->Finish());
      verdict_.unsound_checkpoints = checkpoints_->unsound();
    } else {
      verdict_.checks.push_back({kCheckCheckpoints, Outcome::kNotRun, "left out"});
    }
  }
  AddUnreachedChecks(verdict_);
  for (const Check& check : verdict_.checks) verdict_.damaged |= check.damage;
  verdict_.checks.push_back(
      {kCheckReexecution, Outcome::kNotRun, "ask for it with --reexecute all"});
  return std::move(verdict_);
}

RecordExamination::RecordExamination(const RecordReader& reader, const std::string& record,
                                     FileCheck file_check)
    : parts_(std::make_unique<Parts>(reader, record, file_check)) {}
RecordExamination::~RecordExamination() = default;

const LayerTable* RecordExamination::table() const {
  return parts_->table();
}
const Verdict& RecordExamination::verdict() const {
  return parts_->verdict();
}
ReadOptions RecordExamination::options() const {
  return parts_->pass().options();
}
bool RecordExamination::Visit(const SubnetRow& subnet) {
  return parts_->Visit(subnet);
}
void RecordExamination::Stop(const Error& error) {
  parts_->pass().Stop(error);
}
Verdict RecordExamination::Finish() {
  return parts_->Finish();
}

Verdict ExamineRecord(const RecordReader& reader, const std::string& record,
                      const std::function<void(std::int64_t)>& progress) {
  RecordExamination examination(reader, record, RecordExamination::FileCheck::kRun);
  if (examination.table() != nullptr) {
    std::int64_t subnets = 0;
    const Status read = reader.ForEachSubnet(examination.options(), [&](const SubnetRow& subnet) {
      examination.Visit(subnet);
      if (progress) progress(++subnets);
      return true;
    });
    if (!read) examination.Stop(read.error());
  }
  return examination.Finish();
}

}  // namespace verbatim
