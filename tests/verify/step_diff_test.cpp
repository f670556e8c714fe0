// Comparisons of step runs that were recorded, each with one thing other than in its twin.
#include "verify/step_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/temporary_folder.h"
#include "tests/verify/step_sample.h"
#include "verify/against.h"
#include "verify/diff.h"
#include "verify/examine.h"
#include "verify/report.h"

namespace verbatim {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

class StepDiffTest : public testing::Test {
 protected:
  std::unique_ptr<RecordReader> Write(const SampleSteps& sample, const std::string& name) const {
    auto reader = RecordReader::Open(WriteSteps(sample, (temporary_.path() / name).string()));
    VERBATIM_CHECK(reader.has_value(), "{}", reader.error().message);
    return *std::move(reader);
  }
  Result<Verdict> TryDiff(const SampleSteps& a, const SampleSteps& b,
                          const StepDiffOptions& options = {}) const {
    const auto reader_a = Write(a, "a.db");
    const auto reader_b = Write(b, "b.db");
    return CompareRecords(*reader_a, "a.db", *reader_b, "b.db", {}, options);
  }
  Verdict Diff(const SampleSteps& a, const SampleSteps& b,
               const StepDiffOptions& options = {}) const {
    auto verdict = TryDiff(a, b, options);
    VERBATIM_CHECK(verdict.has_value(), "{}", verdict.error().message);
    return *std::move(verdict);
  }
  /// Of a run with `change` in its rows against one without.
  Verdict DiffOf(const std::function<void(std::int64_t, StepRow&, SampleState&)>& change) const {
    SampleSteps b;
    b.after = change;
    return Diff({}, b);
  }
  static std::string DetailOf(const Verdict& verdict, std::string_view name) {
    for (const Check& check : verdict.checks) {
      if (check.name == name) return check.detail;
    }
    return "no such check";
  }

  const test::TemporaryFolder temporary_;
};

/// Class and place of a verdict's first difference.
std::string First(const Verdict& verdict) {
  if (!verdict.first_difference) return "equal";
  const Difference& first = *verdict.first_difference;
  return fmt::format("{}: {}, {}", ToString(first.kind), PlaceText(first), first.what);
}

std::string Cause(const Verdict& verdict) {
  return verdict.first_difference ? verdict.first_difference->cause : "equal";
}

TEST_F(StepDiffTest, EqualRunsAreEqual) {
  const Verdict verdict = Diff({}, {});
  EXPECT_EQ(verdict.exit_code(), 0) << RenderText(verdict);
  EXPECT_EQ(verdict.comparison->subnets_equal, 20);
  EXPECT_EQ(Summary(verdict), "20 steps, 80 accesses compared: equal");
  EXPECT_THAT(RenderText(verdict), testing::Not(HasSubstr("subnet")));
}

TEST_F(StepDiffTest, FindsEachClassWithItsStepAndLayer) {
  const Verdict outside = DiffOf([](std::int64_t step, StepRow& row, SampleState&) {
    if (step == 7) row.facts.outside = {2};
  });
  EXPECT_EQ(First(outside), "schedule: step 7, layer fc2.weight, forward, version read");
  EXPECT_EQ(Cause(outside), "in B fc2.weight was written before step 7 read it, by no update");

  const Verdict batch = DiffOf([](std::int64_t step, StepRow& row, SampleState&) {
    if (step == 7) row.batch = DigestOf("another");
  });
  EXPECT_EQ(First(batch), "batch bytes: step 7, batch");

  const Verdict settings = DiffOf([](std::int64_t step, StepRow& row, SampleState&) {
    if (step == 7) row.facts.settings = {{"lr", "0.01"}, {"nesterov", "true"}};
  });
  EXPECT_EQ(First(settings), "hyper-parameters: step 7, hyper-parameters");
  EXPECT_EQ(Cause(settings), "lr: 0.1 / 0.01, momentum: 0.9 / none, nesterov: none / true");

  const Verdict random = DiffOf([](std::int64_t step, StepRow& row, SampleState&) {
    if (step == 7) row.facts.random_state = DigestOf("another");
  });
  EXPECT_EQ(First(random), "random state: step 7, random state");

  const Verdict captured = DiffOf([](std::int64_t step, StepRow& row, SampleState&) {
    if (step == 7) row.captured[0].digest = DigestOf("another");
  });
  EXPECT_EQ(First(captured), "computation: step 7, layer relu, forward, captured tensor");

  const Verdict loss = DiffOf([](std::int64_t step, StepRow& row, SampleState&) {
    if (step == 7) row.loss_bits = *row.loss_bits + 1;
  });
  EXPECT_EQ(First(loss), "computation: step 7, forward, loss");

  const Verdict gradients = DiffOf([](std::int64_t step, StepRow& row, SampleState&) {
    if (step == 7) row.layers[0].gradients = row.layers[2].gradients = DigestOf("another");
  });
  EXPECT_EQ(First(gradients), "computation: step 7, layer fc2.weight, backward, gradients");

  const Verdict buffer = DiffOf([](std::int64_t step, StepRow& row, SampleState&) {
    if (step == 7) row.layers[1].weights = DigestOf("another");
  });
  EXPECT_EQ(First(buffer), "computation: step 7, layer bn.mean, forward, buffer");

  const Verdict state = DiffOf([](std::int64_t step, StepRow& row, SampleState&) {
    if (step == 7) row.layers[3].optimizer_state = DigestOf("another");
  });
  EXPECT_EQ(First(state), "computation: step 7, layer fc2.bias, update, optimizer state");
  EXPECT_THAT(Cause(state), EndsWith("; no other layer differs after this step"));
}

TEST_F(StepDiffTest, TellsTheOrderOfABatchFromItsBytes) {
  SampleSteps a;
  a.after = [](std::int64_t step, StepRow& row, SampleState&) {
    row.facts.parts = {DigestOf(fmt::format("{} 0", step)), DigestOf(fmt::format("{} 1", step))};
  };
  SampleSteps b = a;
  b.after = [&](std::int64_t step, StepRow& row, SampleState& state) {
    a.after(step, row, state);
    if (step == 4) std::swap(row.facts.parts[0], row.facts.parts[1]);
    if (step == 4) row.batch = DigestOf("in another order");
    if (step == 9) row.facts.parts[1] = DigestOf("another");
    if (step == 9) row.batch = DigestOf("another");
    if (step == 11) row.facts.parts.pop_back();
  };
  const Verdict verdict = Diff(a, b);
  EXPECT_EQ(First(verdict), "sample order: step 4, batch");
  ASSERT_EQ(verdict.comparison->origin_count, 3);
  EXPECT_EQ(verdict.comparison->origins[1].kind, DifferenceClass::kBatchBytes);
  EXPECT_EQ(verdict.comparison->origins[1].cause, "part 1 of 2 has other bytes");
  EXPECT_EQ(verdict.comparison->origins[2].cause, "the batch has another number of parts");
}

TEST_F(StepDiffTest, ADifferenceTaintsWhatFollows) {
  SampleSteps b;
  b.noise = [](std::int64_t step) { return step == 5 ? "a bit flipped" : ""; };
  const Verdict verdict = Diff({}, b);
  EXPECT_EQ(First(verdict), "computation: step 5, layer relu, forward, captured tensor");
  EXPECT_THAT(Cause(verdict),
              HasSubstr("the weights before it, the batch, the hyper-parameters and the random "
                        "state were equal"));
  EXPECT_EQ(verdict.comparison->origin_count, 1);
  EXPECT_THAT(verdict.comparison->tainted, ElementsAre(SeqRange{6, 19}));
  EXPECT_THAT(verdict.comparison->layers, testing::SizeIs(4));
  EXPECT_EQ(verdict.first_difference->next_command, "verbatim show a.db --step 5");
  EXPECT_THAT(RenderText(verdict), HasSubstr("14 tainted steps of 20: 6–19"));
}

TEST_F(StepDiffTest, NamesASkippedUpdate) {
  SampleSteps b;
  SampleState kept;
  b.before = [&](std::int64_t step, SampleState& state) {
    if (step == 8) kept = state;
  };
  b.after = [&](std::int64_t step, StepRow& row, SampleState& state) {
    if (step != 8) return;
    for (StepDigests& digests : row.layers) {
      if (digests.layer == 1) continue;  // a buffer is written by the forward pass
      const std::string& name = b.layers[static_cast<std::size_t>(digests.layer)].name;
      digests.weights = state.weights[name] = kept.weights[name];
      digests.optimizer_state = state.optimizer_state[name] = kept.optimizer_state[name];
    }
  };
  const Verdict verdict = Diff({}, b);
  EXPECT_EQ(First(verdict), "computation: step 8, layer fc2.bias, update, weights");
  EXPECT_EQ(Cause(verdict),
            "in B the update was skipped: the 3 layers that differ are as step 7 left them");
}

TEST_F(StepDiffTest, NamesALayerThatOneUpdateLeftOut) {
  SampleSteps b;
  b.run.spec.gradients = false;
  Digest before;
  b.before = [&](std::int64_t step, SampleState& state) {
    if (step == 8) before = state.weights["fc1.weight"];
  };
  b.after = [&](std::int64_t step, StepRow& row, SampleState& state) {
    if (step != 8) return;
    row.layers[0].weights = state.weights["fc1.weight"] = before;
  };
  const Verdict verdict = Diff({}, b);
  EXPECT_EQ(First(verdict), "computation: step 8, layer fc1.weight, update, weights");
  EXPECT_THAT(Cause(verdict), EndsWith("; no other layer differs after this step"));
}

TEST_F(StepDiffTest, OtherIntervalsMeetWhereTheyMeet) {
  SampleSteps a;
  a.steps = 61;
  a.run.spec.every = 4;
  SampleSteps b = a;
  b.run.spec.every = 10;
  const Verdict equal = Diff(a, b);
  EXPECT_EQ(equal.exit_code(), 0) << RenderText(equal);
  EXPECT_EQ(DetailOf(equal, "steps"),
            "4 steps in common, from 0 to 60, 16 accesses compared: equal; 12 steps only in A; 3 "
            "steps only in B");
  b.noise = [](std::int64_t step) { return step == 33 ? "a bit flipped" : ""; };
  const Verdict different = Diff(a, b);
  EXPECT_EQ(First(different), "computation: step 40, layer relu, forward, captured tensor");
  EXPECT_THAT(Cause(different),
              EndsWith("; it arose between step 20 and step 40, of which both have none"));
  EXPECT_THAT(different.comparison->tainted, ElementsAre(SeqRange{60, 60}));
}

TEST_F(StepDiffTest, WritesBeforeStepsOfOneSideCountForTheNextCommonOne) {
  SampleSteps a;
  a.steps = 31;
  SampleSteps b = a;
  b.run.spec.every = 10;
  a.after = [](std::int64_t step, StepRow& row, SampleState&) {
    if (step == 5 || step == 8) row.facts.outside = {2};
  };
  b.after = [](std::int64_t step, StepRow& row, SampleState&) {
    if (step == 10) row.facts.outside = {2};
  };
  EXPECT_EQ(First(Diff(a, b)), "equal");
  EXPECT_EQ(First(Diff(b, a)), "equal");
  b.after = [](std::int64_t step, StepRow& row, SampleState&) {
    if (step == 10 || step == 20) row.facts.outside = {2};
  };
  EXPECT_EQ(First(Diff(a, b)), "schedule: step 20, layer fc2.weight, forward, version read");
  b.after = nullptr;
  EXPECT_EQ(First(Diff(b, a)), "schedule: step 10, layer fc2.weight, forward, version read");
}

TEST_F(StepDiffTest, WritesBeforeTheFirstCommonStepAreOfOtherBeginnings) {
  SampleSteps a;
  a.first = 1;
  a.after = [](std::int64_t step, StepRow& row, SampleState&) {
    if (step == 5) row.facts.outside = {2};
  };
  SampleSteps b;
  b.first = 1;
  b.run.spec.every = 10;
  b.after = [](std::int64_t step, StepRow& row, SampleState&) {
    if (step == 10) row.facts.outside = {2};
  };
  EXPECT_EQ(First(Diff(a, b)), "equal");
}

TEST_F(StepDiffTest, RangesOfTaintSpanTheStepsInCommon) {
  SampleSteps a;
  a.steps = 61;
  a.run.spec.every = 10;
  SampleSteps b = a;
  b.noise = [](std::int64_t step) { return step == 12 ? "a bit flipped" : ""; };
  const Verdict verdict = Diff(a, b);
  EXPECT_THAT(verdict.comparison->tainted, ElementsAre(SeqRange{30, 60}));
  EXPECT_EQ(verdict.comparison->map.columns(), 7);
}

TEST_F(StepDiffTest, OtherLengthsAreComparedAsFarAsBothGo) {
  SampleSteps b;
  b.steps = 5;
  b.status = RunStatus::kInterrupted;
  const Verdict verdict = Diff({}, b);
  EXPECT_EQ(verdict.exit_code(), 0);
  EXPECT_EQ(Summary(verdict), "5 steps, 20 accesses compared (those that both have): equal");
  EXPECT_THAT(DetailOf(verdict, "steps"), EndsWith("equal; 15 steps only in A"));
}

TEST_F(StepDiffTest, ARunThatWentOnBeginsWithWhatWasLeft) {
  // B goes on from a checkpoint after step 9.
  SampleSteps b;
  b.first = 10;
  b.steps = 10;
  {
    SampleSteps a;
    SampleState state;
    for (const StepLayer& layer : a.layers) state.weights[layer.name] = layer.initial_digest;
    for (std::int64_t step = 0; step < 10; ++step) SampleStep(a, step, state);
    for (StepLayer& layer : b.layers) {
      if (layer.kind != StepLayerKind::kCaptured) layer.initial_digest = state.weights[layer.name];
    }
    b.before = [state](std::int64_t step, SampleState& into) {
      if (step == 10) into = state;
    };
  }
  const Verdict equal = Diff({}, b);
  EXPECT_EQ(equal.exit_code(), 0) << RenderText(equal);
  EXPECT_EQ(DetailOf(equal, "layers"), "5 common layers");
  b.layers[2].initial_digest = DigestOf("another");
  const Verdict different = Diff({}, b);
  EXPECT_EQ(First(different),
            "initial weights: before the first step, layer fc2.weight, initial weights");
}

TEST_F(StepDiffTest, SaysWhereBeginningsCannotBeCompared) {
  SampleSteps b;
  b.first = 5;
  b.run.spec.every = 3;
  b.layers[0].initial_digest = DigestOf("what step 5 left");
  b.noise = [](std::int64_t) { return "another"; };
  const Verdict verdict = Diff({}, b);
  EXPECT_THAT(DetailOf(verdict, "layers"),
              HasSubstr("what the runs began with is not compared: A is recorded from step 0, B "
                        "from step 6"));
  EXPECT_EQ(verdict.first_difference->seq, 6);
}

TEST_F(StepDiffTest, InitialWeightsOfACheckpointAreNotThoseOfTheStart) {
  // B goes on at step 10 from what step 9 left.
  SampleSteps b;
  b.first = 10;
  b.steps = 10;
  b.run.spec.every = 10;
  b.layers[0].initial_digest = DigestOf("what step 9 left");
  b.noise = [](std::int64_t) { return "another"; };
  SampleSteps a;
  a.first = 1;
  a.run.spec.every = 10;
  const Verdict verdict = Diff(a, b);
  EXPECT_THAT(DetailOf(verdict, "layers"),
              HasSubstr("what the runs began with is not compared: steps before step 10 may be "
                        "unrecorded (one of 10 is in A, of 10 in B)"));
  EXPECT_EQ(First(verdict), "computation: step 10, layer relu, forward, captured tensor");
  a.run.spec.every = 1;
  EXPECT_THAT(DetailOf(Diff(a, b), "layers"),
              HasSubstr("A is recorded from step 1, B from step 10"));
  a.first = b.first;
  b.run.spec.every = 1;
  EXPECT_EQ(First(Diff(a, b)),
            "initial weights: before the first step, layer fc1.weight, initial weights");
}

TEST_F(StepDiffTest, RunsWithoutACommonStepAreRefused) {
  SampleSteps b;
  b.first = 30;
  const auto verdict = TryDiff({}, b);
  ASSERT_FALSE(verdict.has_value());
  EXPECT_EQ(verdict.error().kind, ErrorKind::kBadInput);
  EXPECT_EQ(verdict.error().message,
            "a.db has 20 steps from 0 on, b.db has 20 steps from 30 on: no step in common, so "
            "nothing was compared");
}

TEST_F(StepDiffTest, OtherSeedsExplainOtherInitialWeights) {
  SampleSteps b;
  b.run.spec.seed = 2;
  b.layers[0].initial_digest = DigestOf("another");
  const Verdict verdict = Diff({}, b);
  EXPECT_EQ(First(verdict),
            "initial weights: before the first step, layer fc1.weight, initial weights");
  EXPECT_THAT(Cause(verdict), EndsWith("; the runs had other seeds (1 / 2)"));
}

TEST_F(StepDiffTest, RestIsComparedWhereALayerIsOneSidesOnly) {
  SampleSteps b;
  b.layers[3].shape = {99};
  const Verdict verdict = Diff({}, b);
  EXPECT_EQ(First(verdict), "spec: before the first step, layer fc2.bias, layer");
  EXPECT_EQ(verdict.comparison->subnets_equal, 20);
  EXPECT_EQ(verdict.comparison->accesses_compared, 60);
}

TEST_F(StepDiffTest, RenamedLayersAreCompared) {
  SampleSteps b;
  b.layers[0].name = "encoder.weight";
  const Verdict verdict = Diff({}, b, {.renames = {{"fc1.weight", "encoder.weight"}}});
  EXPECT_EQ(verdict.exit_code(), 0) << RenderText(verdict);
  EXPECT_EQ(verdict.comparison->accesses_compared, 80);
}

TEST_F(StepDiffTest, WhatOneSideDidNotRecordIsNoDifference) {
  SampleSteps b;
  b.run.record_level = "weights";
  b.run.spec.gradients = false;
  b.run.spec.optimizer_state = false;
  b.layers.pop_back();
  b.after = [](std::int64_t, StepRow& row, SampleState&) {
    for (StepDigests& digests : row.layers) digests.optimizer_state.reset();
    row.batch.reset();
    row.loss_bits.reset();
    row.facts.random_state.reset();
    row.facts.settings.clear();
  };
  const Verdict verdict = Diff({}, b);
  EXPECT_EQ(verdict.exit_code(), 0) << RenderText(verdict);
}

TEST_F(StepDiffTest, WhatOneSideLacksThoughItRecordsSuchIsADifference) {
  const Verdict state = DiffOf([](std::int64_t step, StepRow& row, SampleState&) {
    if (step == 3) row.layers[0].optimizer_state.reset();
  });
  EXPECT_EQ(First(state), "computation: step 3, layer fc1.weight, update, optimizer state");
  EXPECT_EQ(state.first_difference->expected, "none");
}

TEST_F(StepDiffTest, ReplicasShareTheirWeightsOnly) {
  const auto replica = [](std::int64_t rank) {
    SampleSteps sample;
    sample.run.spec.world_size = 2;
    sample.run.spec.rank = rank;
    sample.after = [rank](std::int64_t step, StepRow& row, SampleState&) {
      row.batch = DigestOf(fmt::format("batch of rank {}, {}", rank, step));
      row.loss_bits = *row.loss_bits + static_cast<std::uint32_t>(rank);
      row.facts.random_state = DigestOf(fmt::format("rank {}", rank));
      for (StepDigests& digests : row.layers) {
        if (digests.gradients) digests.gradients = DigestOf(fmt::format("rank {}", rank));
      }
      row.captured[0].digest = DigestOf(fmt::format("rank {}", rank));
    };
    return sample;
  };
  const StepDiffOptions replicas{.renames = {}, .replicas = true};
  const Verdict equal = Diff(replica(0), replica(1), replicas);
  EXPECT_EQ(equal.exit_code(), 0) << RenderText(equal);

  const Verdict as_runs = Diff(replica(0), replica(1));
  EXPECT_EQ(First(as_runs), "batch bytes: step 0, batch");
  EXPECT_THAT(Cause(as_runs),
              EndsWith("A is rank 0, B rank 1: --replicas compares what replicas share"));

  SampleSteps drifted = replica(1);
  const auto rows = drifted.after;
  drifted.after = [rows](std::int64_t step, StepRow& row, SampleState& state) {
    rows(step, row, state);
    if (step == 6) row.layers[2].weights = row.layers[3].weights = DigestOf("drifted");
  };
  const Verdict different = Diff(replica(0), drifted, replicas);
  EXPECT_EQ(First(different), "computation: step 6, layer fc2.weight, update, weights");

  SampleSteps of_one;
  of_one.after = replica(0).after;
  EXPECT_EQ(Diff(of_one, replica(1)).exit_code(), 0);  // another number of ranks
}

TEST_F(StepDiffTest, BuffersOfReplicasComeLast) {
  SampleSteps a;
  a.run.spec.world_size = 2;
  SampleSteps b = a;
  b.run.spec.rank = 1;
  b.after = [](std::int64_t, StepRow& row, SampleState&) {
    row.layers[1].weights = DigestOf("running mean of rank 1");
  };
  const Verdict verdict = Diff(a, b, {.renames = {}, .replicas = true});
  EXPECT_EQ(First(verdict), "computation: step 0, layer bn.mean, forward, buffer");
  EXPECT_THAT(Cause(verdict), HasSubstr("no parameter differs: each replica updates this buffer"));
}

TEST_F(StepDiffTest, RefusesReplicasThatAreNone) {
  const StepDiffOptions replicas{.renames = {}, .replicas = true};
  EXPECT_EQ(TryDiff({}, {}, replicas).error().message, "--replicas: both records are rank 0's");
  SampleSteps b;
  b.run.spec.world_size = 2;
  b.run.spec.rank = 1;
  EXPECT_EQ(TryDiff({}, b, replicas).error().message, "--replicas: A is of 1 rank, B of 2 ranks");
}

TEST_F(StepDiffTest, LossesAloneAreComparedAndTaintThoseAfter) {
  SampleSteps a;
  a.run.record_level = "losses";
  a.run.spec.gradients = false;
  a.layers.clear();
  SampleSteps b = a;
  b.after = [](std::int64_t step, StepRow& row, SampleState&) {
    if (step >= 12) row.loss_bits = *row.loss_bits + 1;
  };
  const Verdict verdict = Diff(a, b);
  EXPECT_EQ(First(verdict), "computation: step 12, forward, loss");
  EXPECT_EQ(verdict.comparison->origin_count, 1);
  EXPECT_THAT(verdict.comparison->tainted, ElementsAre(SeqRange{13, 19}));
  EXPECT_EQ(Diff(a, a).exit_code(), 0);
  // Against a run that has layers: its losses are the sample's, for layers or none.
  SampleSteps with_layers;
  with_layers.after = [](std::int64_t step, StepRow& row, SampleState&) {
    row.loss_bits = static_cast<std::uint32_t>(step);
  };
  a.after = with_layers.after;
  EXPECT_EQ(Diff(a, with_layers).exit_code(), 0);
}

TEST_F(StepDiffTest, LossesAreComparedAlsoWhereTheFirstIsNone) {
  SampleSteps a;
  a.after = [](std::int64_t step, StepRow& row, SampleState&) {
    if (step == 0) row.loss_bits.reset();
  };
  SampleSteps b = a;
  b.after = [&](std::int64_t step, StepRow& row, SampleState& state) {
    a.after(step, row, state);
    if (step == 7) row.loss_bits = *row.loss_bits + 1;
  };
  EXPECT_EQ(First(Diff(a, b)), "computation: step 7, forward, loss");
  b.after = [&](std::int64_t step, StepRow& row, SampleState& state) {
    a.after(step, row, state);
    if (step == 9) row.loss_bits = kNoLoss;
  };
  const Verdict nan = Diff(a, b);
  EXPECT_EQ(First(nan), "computation: step 9, forward, loss");
  EXPECT_EQ(nan.first_difference->expected, "NaN, or none (bits 0x7fc00000)");
}

TEST_F(StepDiffTest, OtherEnvironmentsExcuseNumbers) {
  SampleSteps b;
  b.environment = {{"torch.version", "2.9.0"}};
  b.noise = [](std::int64_t step) { return step == 5 ? "another kernel" : ""; };
  const Verdict verdict = Diff({}, b);
  EXPECT_EQ(First(verdict), "environment: step 5, layer relu, forward, captured tensor");
}

TEST_F(StepDiffTest, AReferenceIsComparedLikewise) {
  SampleSteps b;
  b.noise = [](std::int64_t step) { return step == 5 ? "a bit flipped" : ""; };
  const auto record = Write({}, "a.db");
  const auto reference = Write(b, "b.db");
  Verdict verdict = ExamineRecord(*record, "a.db");
  ASSERT_TRUE(CompareAgainst(*record, *reference, "b.db", {}, verdict).has_value());
  EXPECT_EQ(verdict.exit_code(), 1);
  EXPECT_TRUE(verdict.is_reference_difference);
  EXPECT_EQ(DetailOf(verdict, "reference"), "5 of 20 steps equal to b.db");
  EXPECT_THAT(Summary(verdict), HasSubstr("not equal to b.db, first at step 5"));
}

}  // namespace
}  // namespace verbatim
