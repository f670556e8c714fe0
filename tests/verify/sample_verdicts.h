// Verdicts of every kind that a report has to write, with awkward characters where they may occur.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "verify/verdict.h"

namespace verbatim {

inline Verdict IntactVerdict() {
  Verdict verdict;
  verdict.record = "run.db";
  verdict.spec_name = "digits";
  verdict.run.policy = "causal";
  verdict.run.record_level = "weights";
  verdict.run.device = "cpu";
  verdict.run.stages = 2;
  verdict.run.in_flight = 4;
  verdict.run.status = RunStatus::kComplete;
  verdict.run.subnets_planned = 300;
  verdict.run.tool_version = "0.1.0";
  verdict.counts = {300, 300, 4200, 300, 4200, 0, 0, 0};
  verdict.checks = {PassedCheck("file", "SQLite's checks"),
                    PassedCheck("causality", "4,200 accesses"),
                    {"re-execution", Outcome::kNotRun, "ask for it with --reexecute all"}};
  return verdict;
}

inline Verdict EqualVerdict() {
  Verdict verdict = IntactVerdict();
  verdict.reexecuted = true;
  verdict.counts.subnets_reexecuted = 300;
  verdict.coverage.recorded = verdict.coverage.selected = verdict.coverage.executed = 300;
  verdict.coverage.description = "all of 300 subnets";
  verdict.checks[2] = PassedCheck("re-execution", "300 subnets");
  return verdict;
}

inline Difference ScheduleDifference() {
  Difference difference;
  difference.kind = DifferenceClass::kSchedule;
  difference.seq = 12;
  difference.layer = 8;
  difference.layer_name = "block3.1";
  difference.phase = Phase::kForward;
  difference.what = "version read";
  difference.recorded = "version 7";
  difference.expected = "version 10";
  difference.cause =
      "subnet 12 read block3.1 at version 7 on stage 1; its causal predecessor is subnet 10";
  difference.next_command = "verbatim show run.db --layer block3.1";
  return difference;
}

inline Verdict DifferentVerdict() {
  Verdict verdict = IntactVerdict();
  AddProblem(verdict.checks[1], "subnet 12 read block3.1 at version 7");
  verdict.checks[1].detail = "1 violation in 1 subnet";
  verdict.environment_differences = {{"cpu.model", "A|B", "C<D>", true},
                                     {"info.host", "x", "", false}};
  verdict.first_difference = ScheduleDifference();
  return verdict;
}

inline Verdict DamagedVerdict() {
  Verdict verdict = IntactVerdict();
  verdict.damaged = true;
  verdict.spec_name.clear();
  for (int i = 0; i < 13; ++i) AddDamage(verdict.checks[0], "page 7: <bad> & \"worse\" \x01");
  verdict.checks[1] = {"causality", Outcome::kNotRun, "the record is damaged"};
  return verdict;
}

inline Verdict InterruptedVerdict() {
  Verdict verdict = IntactVerdict();
  verdict.record = "a|b `c`\xff.db";
  verdict.run.status = RunStatus::kInterrupted;
  verdict.counts.subnets = verdict.counts.subnets_audited = 120;
  return verdict;
}

/// A draw that found nothing.
inline Verdict DrawnVerdict() {
  Verdict verdict = EqualVerdict();
  verdict.counts.subnets_reexecuted = 80;
  verdict.coverage.selected = 50;
  verdict.coverage.executed = 80;
  verdict.coverage.description = "80 of 300 subnets (50 drawn by seed 7, with their causal cones)";
  verdict.coverage.detectable_share = 0.054;
  return verdict;
}

/// A difference whose tensor was named.
inline Verdict ExplainedVerdict() {
  Verdict verdict = DifferentVerdict();
  Explanation explanation;
  explanation.seq = 12;
  explanation.left_reproduced = true;
  TensorDifference tensor;
  tensor.phase = Phase::kBackward;
  tensor.layer_name = "block3.1";
  tensor.op = "conv k3";
  tensor.tensor = "gradient of weight";
  tensor.shape = {8, 8, 3, 3};
  tensor.index = {0, 1, 2, 0};
  tensor.left = 0.5F;
  tensor.right = 0.25F;
  tensor.elements = 576;
  tensor.elements_different = 3;
  tensor.largest_difference = 0.25;
  explanation.first = tensor;
  verdict.explanation = explanation;
  return verdict;
}

/// Two records of 6 subnets in 3 positions: subnet 2 is an origin, 3 and 5 are tainted.
inline Verdict ComparedVerdict() {
  Verdict verdict = IntactVerdict();
  verdict.kind = VerdictKind::kDiff;
  verdict.reference = "other.db";
  verdict.counts = {6, 6, 18, 6, 18, 0, 0, 0};
  verdict.run.subnets_planned = 6;
  verdict.spec_differences = {{"training.lr.base", "0.1", "0.2"}};
  verdict.layout_differences = {{"stages", "2", "3"}};
  Difference origin = ScheduleDifference();
  origin.kind = DifferenceClass::kComputation;
  origin.seq = 2;
  origin.what = "weights";
  origin.recorded = "00000000";
  origin.expected = "dfbb1e8b";
  origin.next_command = "verbatim show run.db --subnet 2";
  verdict.first_difference = origin;
  Comparison comparison;
  comparison.subnets_compared = 6;
  comparison.subnets_equal = 3;
  comparison.accesses_compared = 18;
  comparison.accesses_different = 5;
  comparison.origins = {origin};
  comparison.origin_count = 1;
  comparison.tainted = {{3, 3}, {5, 5}};
  comparison.tainted_count = 2;
  comparison.layers = {{8, "block3.1", 2, 3}, {0, "stem", 3, 2}};
  constexpr Equality kEqual = Equality::kEqual;
  constexpr Equality kTainted = Equality::kTainted;
  comparison.map.positions = 3;
  comparison.map.cells = {kEqual,
                          kEqual,
                          Equality::kNotCompared,
                          kEqual,
                          kEqual,
                          kEqual,
                          kEqual,
                          Equality::kOrigin,
                          kEqual,
                          kTainted,
                          kTainted,
                          kEqual,
                          kEqual,
                          kEqual,
                          kEqual,
                          kTainted,
                          kTainted,
                          kEqual};
  verdict.comparison = comparison;
  return verdict;
}

/// The first of them verified against the second.
inline Verdict AgainstVerdict() {
  Verdict verdict = ComparedVerdict();
  verdict.kind = VerdictKind::kVerify;
  return verdict;
}

/// By the name under which a test may keep them.
inline std::vector<std::pair<std::string, Verdict>> SampleVerdicts() {
  return {{"intact", IntactVerdict()},           {"equal", EqualVerdict()},
          {"different", DifferentVerdict()},     {"damaged", DamagedVerdict()},
          {"interrupted", InterruptedVerdict()}, {"drawn", DrawnVerdict()},
          {"explained", ExplainedVerdict()},     {"compared", ComparedVerdict()},
          {"against", AgainstVerdict()}};
}

}  // namespace verbatim
