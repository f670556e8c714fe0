#include "verify/examine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "recorder/content_digest.h"
#include "store/checkpoint_files.h"
#include "verify/causal_audit.h"
#include "verify/checkpoint_check.h"
#include "verify/row_check.h"
#include "verify/seal_check.h"
#include "verify/stream_check.h"
#include "verify/text.h"
#include "verify/tree_check.h"

namespace verbatim {
namespace {

/// "subnet 5 is missing", "subnets 5 … 9 are missing".
std::string MissingText(std::int64_t first, std::int64_t last) {
  return first == last ? fmt::format("subnet {} is missing", first)
                       : fmt::format("subnets {} … {} are missing", first, last);
}

/// One pass over the subnets: rows, stream and causality together.
class SubnetPass {
 public:
  SubnetPass(Verdict& verdict, std::span<const ResumptionRow> resumptions, const Spec& spec,
             const LayerTable& table, StreamCheck& stream, TreeCheck& trees)
      : verdict_(verdict),
        spec_(spec),
        table_(table),
        rows_(verdict.run, resumptions, spec, table),
        stream_(stream),
        trees_(trees),
        audit_(table.delays()) {}

  ReadOptions options() const { return {true, rows_.wants_activations(), true}; }
  bool Visit(const SubnetRow& subnet);
  void Stop(const Error& error);
  std::vector<Check> Finish();

 private:
  bool MayHaveGaps() const {
    return verdict_.run.status == RunStatus::kRunning || verdict_.run.status == RunStatus::kFailed;
  }
  std::optional<std::string> RowProblem(const SubnetRow& subnet);
  void Damage(std::int64_t seq, std::string problem);
  void CheckSequence(std::int64_t seq);
  void CompareStream(const SubnetRow& subnet);
  void Audit(const SubnetRow& subnet);
  void CheckCount();
  Check StreamResult() const;
  Check CausalityResult() const;

  Verdict& verdict_;
  const Spec& spec_;
  const LayerTable& table_;
  RowCheck rows_;
  StreamCheck& stream_;
  TreeCheck& trees_;
  CausalAudit audit_;
  Check subnets_ = PassedCheck(kCheckSubnets);
  std::int64_t next_seq_ = 0;
  std::int64_t nan_losses_ = 0;
  std::int64_t stream_differences_ = 0;
  std::int64_t stream_compared_ = 0;
  std::string audit_stop_;  ///< why the audit ended before the last row, or empty
};

void SubnetPass::Stop(const Error& error) {
  Damage(next_seq_, error.message);
  trees_.Stop();
  if (audit_stop_.empty()) audit_stop_ = "the rows after it cannot be read";
}

bool SubnetPass::Visit(const SubnetRow& subnet) {
  ++verdict_.counts.subnets;
  verdict_.counts.accesses += static_cast<std::int64_t>(subnet.accesses.size());
  CheckSequence(subnet.seq);
  trees_.Add(subnet);
  if (auto problem = RowProblem(subnet)) {
    Damage(subnet.seq, *std::move(problem));
    if (audit_stop_.empty())
      audit_stop_ = fmt::format("the row of subnet {} is damaged", subnet.seq);
    return false;
  }
  if (std::isnan(LossFromBits(subnet.loss_bits))) ++nan_losses_;
  CompareStream(subnet);
  if (audit_stop_.empty()) Audit(subnet);
  return true;
}

std::optional<std::string> SubnetPass::RowProblem(const SubnetRow& subnet) {
  // First what contradicts itself, for that says more than a digest.
  if (auto problem = rows_.Problem(subnet)) return problem;
  if (const Hash256 leaf = ContentLeaf(subnet); leaf != subnet.content_leaf) {
    return fmt::format("subnet {}: its row was changed after it was written (leaf {}, recorded {})",
                       subnet.seq, ToShortHex(leaf), ToShortHex(subnet.content_leaf));
  }
  if (const Hash256 leaf = LayoutLeaf(subnet); leaf != subnet.layout_leaf) {
    return fmt::format(
        "subnet {}: its stages or times were changed after they were written (leaf {}, recorded "
        "{})",
        subnet.seq, ToShortHex(leaf), ToShortHex(subnet.layout_leaf));
  }
  return std::nullopt;
}

void SubnetPass::Damage(std::int64_t seq, std::string problem) {
  AddDamage(subnets_, std::move(problem));
  if (!verdict_.first_damaged_subnet) verdict_.first_damaged_subnet = seq;
}

void SubnetPass::CheckSequence(std::int64_t seq) {
  if (seq != next_seq_) {
    const std::string missing = seq > next_seq_ ? MissingText(next_seq_, seq - 1)
                                                : fmt::format("subnet {} is out of order", seq);
    if (audit_stop_.empty()) audit_stop_ = missing;
    if (!MayHaveGaps() || seq < next_seq_) Damage(std::min(seq, next_seq_), missing);
  }
  next_seq_ = seq + 1;
}

void SubnetPass::CompareStream(const SubnetRow& subnet) {
  if (!stream_.obstacle().empty()) return;
  ++stream_compared_;
  auto difference = stream_.CompareSubnet(subnet.seq, subnet.choices);
  if (!difference) return;
  ++stream_differences_;
  if (verdict_.first_difference) return;
  difference->next_command =
      fmt::format("verbatim show {} --subnet {}", ShellPath(verdict_.record), subnet.seq);
  verdict_.first_difference = std::move(difference);
}

void SubnetPass::Audit(const SubnetRow& subnet) {
  audit_.Visit(subnet);
  if (!audit_.first() || verdict_.first_difference) return;
  const CausalViolation& violation = *audit_.first();
  const bool is_read = violation.kind == CausalViolation::Kind::kRead;
  Difference difference;
  difference.kind = DifferenceClass::kSchedule;
  difference.seq = violation.seq;
  difference.layer = violation.layer;
  difference.layer_name = table_.Name(violation.layer);
  difference.phase = is_read ? Phase::kForward : Phase::kUpdate;
  difference.what = is_read ? "version read" : "version updated";
  difference.recorded = FormatVersion(violation.observed);
  difference.expected = FormatVersion(violation.expected);
  difference.cause = Describe(violation, difference.layer_name);
  difference.next_command = fmt::format("verbatim show {} --layer {}", ShellPath(verdict_.record),
                                        ShellWord(difference.layer_name));
  verdict_.first_difference = std::move(difference);
}

void SubnetPass::CheckCount() {
  const std::int64_t planned = verdict_.run.subnets_planned;
  if (planned != spec_.training.subnets) {
    AddDamage(subnets_, fmt::format("{} are said to be planned, the spec has {}",
                                    FormatCount(planned, "subnet", "subnets"),
                                    FormatCount(spec_.training.subnets)));
  }
  if (verdict_.run.status == RunStatus::kComplete && subnets_.outcome == Outcome::kPassed &&
      verdict_.counts.subnets < planned) {
    Damage(next_seq_, fmt::format("the run is said to be complete, but {} of {} subnets are "
                                  "recorded",
                                  FormatCount(verdict_.counts.subnets), FormatCount(planned)));
  }
}

Check SubnetPass::StreamResult() const {
  Check check = PassedCheck(kCheckStream);
  if (!stream_.obstacle().empty()) {
    check.outcome = Outcome::kNotRun;
    check.detail = stream_.obstacle();
  } else if (stream_differences_ > 0) {
    check.outcome = Outcome::kFailed;
    check.detail =
        fmt::format("{} did not choose what {}",
                    FormatCount(stream_differences_, "subnet", "subnets"), stream_.source());
  } else {
    check.detail = fmt::format(
        "{} chose what {}", FormatCount(stream_compared_, "subnet", "subnets"), stream_.source());
  }
  return check;
}

Check SubnetPass::CausalityResult() const {
  Check check = PassedCheck(kCheckCausality);
  if (audit_.violations() > 0) {
    check.detail =
        fmt::format("{} in {}", FormatCount(audit_.violations(), "violation", "violations"),
                    FormatCount(audit_.subnets_affected(), "subnet", "subnets"));
    AddProblem(check, Describe(*audit_.first(), table_.Name(audit_.first()->layer)));
    check.problem_count = audit_.violations();
  } else {
    check.detail = fmt::format("{} read and updated the version of their causal predecessor",
                               FormatCount(audit_.accesses(), "access", "accesses"));
    if (audit_.has_delays()) check.detail += ", as late as the delays say";
  }
  if (!audit_stop_.empty()) {
    if (audit_.subnets() == 0) check.outcome = Outcome::kNotRun;
    check.detail +=
        fmt::format("; only the first {} audited: {}",
                    FormatCount(audit_.subnets(), "subnet was", "subnets were"), audit_stop_);
  }
  return check;
}

std::vector<Check> SubnetPass::Finish() {
  CheckCount();
  verdict_.counts.subnets_audited = audit_.subnets();
  verdict_.counts.accesses_audited = audit_.accesses();
  verdict_.counts.violations = audit_.violations();
  verdict_.counts.subnets_with_violations = audit_.subnets_affected();
  subnets_.detail = fmt::format("{} of {}, {}", FormatCount(verdict_.counts.subnets),
                                FormatCount(verdict_.run.subnets_planned, "subnet", "subnets"),
                                FormatCount(verdict_.counts.accesses, "access", "accesses"));
  if (nan_losses_ > 0) {
    subnets_.detail += fmt::format("; {} NaN", FormatCount(nan_losses_, "loss is", "losses are"));
  }
  return {subnets_, StreamResult(), CausalityResult()};
}

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
    pass_.emplace(verdict_, resumptions_, *spec_, *table_, *stream_, trees_);
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
