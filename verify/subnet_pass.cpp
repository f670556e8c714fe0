#include "verify/subnet_pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "recorder/content_digest.h"
#include "recorder/step_spec.h"
#include "verify/examine.h"
#include "verify/run_words.h"
#include "verify/text.h"

namespace verbatim {
namespace {

/// What a row is called of which only seq is known.
const char* RowWord(RunKind kind) {
  return kind == RunKind::kSteps ? "row" : "subnet";
}

/// "subnet 5 is missing", "subnets 5 … 9 are missing".
std::string MissingText(RunKind kind, std::int64_t first, std::int64_t last) {
  return first == last ? fmt::format("{} {} is missing", RowWord(kind), first)
                       : fmt::format("{}s {} … {} are missing", RowWord(kind), first, last);
}

/// "fc.weight was written after step 41's update and before step 42 read it".
std::string OutsideText(const std::string& layer, std::optional<std::int64_t> before,
                        std::int64_t step) {
  if (!before) return fmt::format("{} was written before step {}, the first, read it", layer, step);
  if (*before == step - 1) {
    return fmt::format("{} was written after step {}'s update and before step {} read it", layer,
                       *before, step);
  }
  return fmt::format("{} was written between step {} and step {}, by no update", layer, *before,
                     step);
}

}  // namespace

SubnetPass::SubnetPass(Verdict& verdict, const LayerTable& table, RowExpectation rows,
                       StreamCheck* stream, TreeCheck& trees)
    : verdict_(verdict),
      table_(table),
      rows_(std::move(rows)),
      stream_(stream),
      trees_(trees),
      audit_(table.delays()),
      subnets_(PassedCheck(is_steps() ? kCheckSteps : kCheckSubnets)) {}

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
    if (audit_stop_.empty()) audit_stop_ = fmt::format("the row of {} is damaged", NameOf(subnet));
    return false;
  }
  const bool has_loss = !subnet.step || subnet.loss_bits != kNoLoss;
  if (has_loss && std::isnan(LossFromBits(subnet.loss_bits))) ++nan_losses_;
  CompareStream(subnet);
  if (audit_stop_.empty()) Audit(subnet);
  return true;
}

std::optional<std::string> SubnetPass::RowProblem(const SubnetRow& subnet) {
  // First what contradicts itself, for that says more than a digest.
  if (auto problem = rows_.problem(subnet)) return problem;
  if (const Hash256 leaf = ContentLeaf(subnet); leaf != subnet.content_leaf) {
    return fmt::format("{}: its row was changed after it was written (leaf {}, recorded {})",
                       NameOf(subnet), ToShortHex(leaf), ToShortHex(subnet.content_leaf));
  }
  if (const Hash256 leaf = LayoutLeaf(subnet); leaf != subnet.layout_leaf) {
    return fmt::format(
        "{}: its stages or times were changed after they were written (leaf {}, recorded {})",
        NameOf(subnet), ToShortHex(leaf), ToShortHex(subnet.layout_leaf));
  }
  return std::nullopt;
}

void SubnetPass::Damage(std::int64_t seq, std::string problem) {
  AddDamage(subnets_, std::move(problem));
  if (!verdict_.first_damaged_subnet) verdict_.first_damaged_subnet = seq;
}

void SubnetPass::CheckSequence(std::int64_t seq) {
  if (seq != next_seq_) {
    const std::string missing =
        seq > next_seq_ ? MissingText(verdict_.run.kind, next_seq_, seq - 1)
                        : fmt::format("{} {} is out of order", RowWord(verdict_.run.kind), seq);
    if (audit_stop_.empty()) audit_stop_ = missing;
    if (!MayHaveGaps() || seq < next_seq_) Damage(std::min(seq, next_seq_), missing);
  }
  next_seq_ = seq + 1;
}

void SubnetPass::CompareStream(const SubnetRow& subnet) {
  if (stream_ == nullptr || !stream_->obstacle().empty()) return;
  ++stream_compared_;
  auto difference = stream_->CompareSubnet(subnet.seq, subnet.choices);
  if (!difference) return;
  ++stream_differences_;
  if (verdict_.first_difference) return;
  difference->next_command =
      fmt::format("verbatim show {} --subnet {}", ShellPath(verdict_.record), subnet.seq);
  verdict_.first_difference = std::move(difference);
}

void SubnetPass::Audit(const SubnetRow& subnet) {
  audit_.Visit(subnet);
  if (subnet.step) AuditOutside(subnet);
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

/// What was written other than by an update: the step did not read what the one before it left.
void SubnetPass::AuditOutside(const SubnetRow& step) {
  const std::int64_t number = step.step->step;
  const std::optional<std::int64_t> before = std::exchange(last_step_, number);
  if (step.step->outside.empty()) return;
  ++steps_with_outside_writes_;
  for (const std::int32_t layer : step.step->outside) {
    ++outside_writes_;
    const std::string cause = OutsideText(table_.Name(layer), before, number);
    if (outside_problems_.size() < kProblemsShown) {
      outside_problems_.push_back(fmt::format("step {}: {}", number, cause));
    }
    if (verdict_.first_difference) continue;
    Difference& difference = verdict_.first_difference.emplace();
    difference.kind = DifferenceClass::kSchedule;
    difference.run = RunKind::kSteps;
    difference.seq = number;
    difference.layer = layer;
    difference.layer_name = table_.Name(layer);
    difference.phase = Phase::kForward;
    difference.what = "version read";
    difference.recorded = "one written from outside";
    difference.expected = before ? fmt::format("step {}'s", *before) : "the initial weights";
    difference.cause = cause;
    difference.next_command = ShowCommand(verdict_.record, difference);
  }
}

void SubnetPass::CheckCount() {
  const std::int64_t planned = verdict_.run.subnets_planned;
  if (planned != rows_.planned) {
    AddDamage(subnets_,
              fmt::format("{} are said to be planned, the spec has {}",
                          FormatCount(planned, "subnet", "subnets"), FormatCount(rows_.planned)));
  }
  // How long another trainer would go on, it need not have known.
  if (!is_steps() && verdict_.run.status == RunStatus::kComplete &&
      subnets_.outcome == Outcome::kPassed && verdict_.counts.subnets < planned) {
    Damage(next_seq_, fmt::format("the run is said to be complete, but {} of {} {} are recorded",
                                  FormatCount(verdict_.counts.subnets), FormatCount(planned),
                                  WordsOf(verdict_.run.kind).many));
  }
}

Check SubnetPass::StreamResult() const {
  Check check = PassedCheck(kCheckStream);
  if (stream_ == nullptr) {
    check.outcome = Outcome::kNotRun;
    check.detail = "a step run has no stream";
  } else if (!stream_->obstacle().empty()) {
    check.outcome = Outcome::kNotRun;
    check.detail = stream_->obstacle();
  } else if (stream_differences_ > 0) {
    check.outcome = Outcome::kFailed;
    check.detail =
        fmt::format("{} did not choose what {}",
                    FormatCount(stream_differences_, "subnet", "subnets"), stream_->source());
  } else {
    check.detail = fmt::format(
        "{} chose what {}", FormatCount(stream_compared_, "subnet", "subnets"), stream_->source());
  }
  return check;
}

Check SubnetPass::CausalityResult() const {
  Check check = PassedCheck(kCheckCausality);
  const std::int64_t violations = audit_.violations() + outside_writes_;
  if (violations > 0) {
    check.detail = fmt::format("{} in {}", FormatCount(violations, "violation", "violations"),
                               CountRows(RowsAffected(), verdict_.run.kind));
    if (audit_.first())
      AddProblem(check, Describe(*audit_.first(), table_.Name(audit_.first()->layer)));
    for (const std::string& problem : outside_problems_) AddProblem(check, problem);
    check.problem_count = violations;
  } else if (is_steps() && audit_.accesses() == 0) {
    check.detail = "no digest of a layer is recorded";
  } else if (is_steps()) {
    check.detail = fmt::format(
        "{} read and updated what the step before left; no write from outside is recorded",
        FormatCount(audit_.accesses(), "access", "accesses"));
  } else {
    check.detail = fmt::format("{} read and updated the version of their causal predecessor",
                               FormatCount(audit_.accesses(), "access", "accesses"));
    if (audit_.has_delays()) check.detail += ", as late as the delays say";
  }
  if (!audit_stop_.empty()) {
    if (audit_.subnets() == 0) check.outcome = Outcome::kNotRun;
    check.detail += fmt::format("; only the first {} {} audited: {}",
                                CountRows(audit_.subnets(), verdict_.run.kind),
                                audit_.subnets() == 1 ? "was" : "were", audit_stop_);
  }
  return check;
}

std::int64_t SubnetPass::RowsAffected() const {
  return std::max(audit_.subnets_affected(), steps_with_outside_writes_);
}

std::vector<Check> SubnetPass::Finish() {
  CheckCount();
  verdict_.counts.subnets_audited = audit_.subnets();
  verdict_.counts.accesses_audited = audit_.accesses();
  verdict_.counts.violations = audit_.violations() + outside_writes_;
  verdict_.counts.subnets_with_violations = RowsAffected();
  subnets_.detail = fmt::format("{}, {}", CountText(verdict_.run, verdict_.counts.subnets),
                                FormatCount(verdict_.counts.accesses, "access", "accesses"));
  if (nan_losses_ > 0) {
    subnets_.detail += fmt::format("; {} NaN", FormatCount(nan_losses_, "loss is", "losses are"));
  }
  return {subnets_, StreamResult(), CausalityResult()};
}

}  // namespace verbatim
