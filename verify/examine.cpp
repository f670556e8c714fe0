#include "verify/examine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "recorder/step_spec.h"
#include "store/checkpoint_files.h"
#include "verify/checkpoint_check.h"
#include "verify/row_check.h"
#include "verify/seal_check.h"
#include "verify/step_check.h"
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

/// What a record says of its run; one of the two, where it can be parsed.
struct RecordedSpec {
  std::optional<Spec> supernet;
  std::optional<StepSpec> steps;
};

Status ParseInto(const RunInfo& run, RecordedSpec& parsed, std::string& name) {
  if (run.kind == RunKind::kSteps) {
    ASSIGN_OR_RETURN(parsed.steps, ParseStepSpec(run.spec_json, "the recorded spec"));
    name = parsed.steps->name;
  } else {
    ASSIGN_OR_RETURN(parsed.supernet, ParseSpec(run.spec_json, "the recorded spec"));
    name = parsed.supernet->name;
  }
  return {};
}

std::string RunDetail(const RunInfo& run) {
  if (run.kind == RunKind::kSteps) {
    return fmt::format("steps of another trainer, level {}", run.record_level);
  }
  return fmt::format("policy {}, {}, level {}", run.policy,
                     FormatCount(run.stages, "stage", "stages"), run.record_level);
}

/// Fills verdict.run and, where the run is sound, returns its spec.
RecordedSpec CheckRun(const RecordReader& reader, Verdict& verdict) {
  Check check = PassedCheck(kCheckRun);
  RecordedSpec parsed;
  if (auto run = reader.Run()) {
    verdict.run = *std::move(run);
    verdict.counts.subnets_planned = verdict.run.subnets_planned;
    for (std::string& problem : RunProblems(verdict.run)) AddDamage(check, std::move(problem));
    const Status spec = ParseInto(verdict.run, parsed, verdict.spec_name);
    if (!spec) AddDamage(check, spec.error().message);
    check.detail = RunDetail(verdict.run);
  } else {
    AddDamage(check, run.error().message);
  }
  const bool sound = check.outcome == Outcome::kPassed;
  verdict.checks.push_back(std::move(check));
  return sound ? std::move(parsed) : RecordedSpec{};
}

std::string LayersDetail(const LayerTable& table, RunKind kind) {
  const std::string layers = FormatCount(std::ssize(table.layers()), "layer", "layers");
  if (kind == RunKind::kSteps) return layers;
  return fmt::format("{} in {}, as the spec lays them out", layers,
                     FormatCount(table.positions(), "position", "positions"));
}

std::optional<LayerTable> CheckLayers(const RecordReader& reader, const RecordedSpec& spec,
                                      Verdict& verdict) {
  Check check = PassedCheck(kCheckLayers);
  std::optional<LayerTable> built;
  auto rows = reader.Layers();
  auto table = rows ? LayerTable::BuildFor(verdict.run.kind, *std::move(rows))
                    : Result<LayerTable>(tl::unexpected(std::move(rows).error()));
  if (!table) {
    AddDamage(check, table.error().message);
  } else if (const auto problem = spec.supernet ? DifferenceFromSpec(*table, *spec.supernet)
                                                : StepLayersProblem(table->layers())) {
    AddDamage(check, *problem);
  } else {
    check.detail = LayersDetail(*table, verdict.run.kind);
    built = *std::move(table);
    if (spec.supernet) built->ReadDelays(*spec.supernet);
  }
  verdict.checks.push_back(std::move(check));
  return built;
}

/// What no step run has. Rows there nevertheless are none of its writer's.
Check CheckAbsent(const char* name, std::int64_t rows) {
  Check check{name, Outcome::kNotRun, fmt::format("a step run has no {}", name)};
  if (rows > 0)
    AddDamage(check, fmt::format("{} of them, where a step run has none", FormatCount(rows)));
  return check;
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
void PutInOrder(Verdict& verdict) {
  std::vector<Check> checks;
  for (const char* name : kCheckOrder) {
    const bool is_steps =
        std::string_view(name) == kCheckSubnets && verdict.run.kind == RunKind::kSteps;
    const char* const wanted = is_steps ? kCheckSteps : name;
    const auto found = std::find_if(verdict.checks.begin(), verdict.checks.end(),
                                    [&](const Check& check) { return check.name == wanted; });
    checks.push_back(found != verdict.checks.end()
                         ? std::move(*found)
                         : Check{wanted, Outcome::kNotRun, "the record is damaged"});
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
    if (spec_.supernet || spec_.steps) table_ = CheckLayers(reader, spec_, verdict_);
    if (!table_) return;
    if (spec_.steps) {
      StartSteps();
    } else {
      StartSubnets(record, file_check);
    }
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
  void StartSubnets(const std::string& record, FileCheck file_check);
  void StartSteps();
  void FinishSubnets();
  void FinishSteps();

  const RecordReader& reader_;
  Verdict verdict_;
  RecordedSpec spec_;
  std::optional<LayerTable> table_;
  std::vector<ResumptionRow> resumptions_;
  TreeCheck trees_;
  std::optional<StreamCheck> stream_;
  std::optional<CheckpointCheck> checkpoints_;  ///< absent: left out
  std::optional<RowCheck> rows_;
  std::optional<StepCheck> steps_;  ///< of a step run, in its place
  std::optional<SubnetPass> pass_;
};

void RecordExamination::Parts::StartSubnets(const std::string& record, FileCheck file_check) {
  // Where they cannot be read, the check of the seals says so.
  resumptions_ = reader_.Resumptions().value_or(std::vector<ResumptionRow>());
  stream_.emplace(verdict_.run, *spec_.supernet, *table_);
  if (file_check == FileCheck::kRun) {
    checkpoints_.emplace(*table_, reader_.Checkpoints().value_or(std::vector<CheckpointRow>()),
                         CheckpointFolder(record));
  }
  RowCheck& rows = rows_.emplace(verdict_.run, resumptions_, RulesOf(*spec_.supernet), *table_);
  RowExpectation expected;
  expected.problem = [&rows](const SubnetRow& subnet) { return rows.Problem(subnet); };
  expected.wants_activations = rows.wants_activations();
  expected.planned = spec_.supernet->training.subnets;
  pass_.emplace(verdict_, *table_, std::move(expected), &*stream_, trees_);
}

void RecordExamination::Parts::StartSteps() {
  StepCheck& steps = steps_.emplace(verdict_.run, *spec_.steps, *table_);
  RowExpectation expected;
  expected.problem = [&steps](const SubnetRow& row) { return steps.Problem(row); };
  expected.wants_activations = steps.wants_activations();
  expected.planned = verdict_.run.subnets_planned;
  pass_.emplace(verdict_, *table_, std::move(expected), nullptr, trees_);
}

void RecordExamination::Parts::FinishSubnets() {
  verdict_.checks.push_back(
      CheckEvaluations(reader_, *spec_.supernet, *table_, *stream_, verdict_));
  if (checkpoints_) {
    verdict_.checks.push_back(checkpoints_->Finish());
    verdict_.unsound_checkpoints = checkpoints_->unsound();
  } else {
    verdict_.checks.push_back({kCheckCheckpoints, Outcome::kNotRun, "left out"});
  }
}

void RecordExamination::Parts::FinishSteps() {
  const auto evaluations = reader_.Evaluations();
  const auto checkpoints = reader_.Checkpoints();
  verdict_.checks.push_back(
      CheckAbsent(kCheckEvaluations, evaluations ? std::ssize(*evaluations) : 0));
  verdict_.checks.push_back(
      CheckAbsent(kCheckCheckpoints, checkpoints ? std::ssize(*checkpoints) : 0));
}

Verdict RecordExamination::Parts::Finish() {
  if (pass_) {
    for (Check& check : pass_->Finish()) verdict_.checks.push_back(std::move(check));
    if (spec_.steps) {
      FinishSteps();
    } else {
      FinishSubnets();
    }
    verdict_.checks.push_back(trees_.Finish());
  }
  verdict_.checks.push_back(CheckSeals(reader_));
  PutInOrder(verdict_);
  for (const Check& check : verdict_.checks) verdict_.damaged |= check.damage;
  verdict_.checks.push_back({kCheckReexecution, Outcome::kNotRun,
                             verdict_.run.kind == RunKind::kSteps
                                 ? "a step run was recorded by another trainer"
                                 : "ask for it with --reexecute all"});
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
