// Proves that a step run is read back as it was recorded, that whatever a trainer passes wrongly is
// refused in words without harm to the record, and that forks, threads and full disks are survived.
#include "recorder/step_recorder.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "recorder/content_digest.h"
#include "store/head.h"
#include "tests/recorder/sample_steps.h"

namespace verbatim {
namespace {

using namespace test;  // NOLINT
namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class StepRecorderTest : public ::testing::Test {
 protected:
  std::vector<SubnetRow> Read() {
    const auto reader = RecordReader::Open(path_);
    EXPECT_TRUE(reader) << (reader ? "" : reader.error().message);
    auto subnets = ReadSubnets(**reader);
    EXPECT_TRUE(subnets) << (subnets ? "" : subnets.error().message);
    return *std::move(subnets);
  }
  std::vector<std::int64_t> RecordedSteps() {
    std::vector<std::int64_t> steps;
    for (const SubnetRow& subnet : Read()) steps.push_back(subnet.step->step);
    return steps;
  }
  Error OpenError(const StepRun& run, const std::vector<StepLayer>& layers,
                  const std::vector<EnvironmentRow>& environment = {}) {
    const auto recorder = StepRecorder::Open(path_, run, layers, environment);
    EXPECT_FALSE(recorder);
    EXPECT_FALSE(fs::exists(path_));
    return recorder ? Error{} : recorder.error();
  }

  TemporaryFolder folder_;
  fs::path path_ = folder_ / "run.db";
};

TEST_F(StepRecorderTest, ARunIsReadBackAsItWasRecorded) {
  WriteSampleSteps(path_);
  const auto reader = *RecordReader::Open(path_);
  EXPECT_EQ(reader->Kind(), RunKind::kSteps);
  const RunInfo run = *reader->Run();
  EXPECT_EQ(run.kind, RunKind::kSteps);
  EXPECT_EQ(run.policy, "steps");
  EXPECT_EQ(run.subnets_planned, 4);
  EXPECT_EQ(run.status, RunStatus::kComplete);
  EXPECT_EQ(ParseStepSpec(run.spec_json, "spec"), SampleStepRun().spec);
  EXPECT_EQ(reader->Layers(), StepLayerRows(SampleStepLayers()));
  EXPECT_EQ(reader->Environment(), SampleEnvironment());
  EXPECT_EQ(reader->SchemaProblems(), std::vector<std::string>{});
  EXPECT_EQ(reader->IntegrityProblems(), std::vector<std::string>{});
  const auto subnets = Read();
  ASSERT_EQ(subnets.size(), 4u);
  for (int index = 0; index < 4; ++index) {
    const SubnetRow& subnet = subnets[static_cast<std::size_t>(index)];
    const StepRow step = SampleStep(index);
    EXPECT_EQ(subnet.seq, index);
    EXPECT_EQ(subnet.step, step.facts);
    EXPECT_EQ(subnet.loss_bits, step.loss_bits);
    EXPECT_EQ(subnet.batch_digest, step.batch);
    EXPECT_TRUE(subnet.choices.empty() && subnet.samples.empty() && subnet.activities.empty());
    ASSERT_EQ(subnet.accesses.size(), 3u);
    for (const AccessRow& access : subnet.accesses) {
      const StepDigests& digests = step.layers[static_cast<std::size_t>(access.layer)];
      const AccessRow expected{
          access.layer,     index - 1, index - 1, 0, digests.weights, digests.optimizer_state,
          digests.gradients};
      EXPECT_EQ(access, expected);
    }
    EXPECT_THAT(subnet.activations, ElementsAre(step.captured[1], step.captured[0]));
    EXPECT_EQ(subnet.content_leaf, ContentLeaf(subnet));
    EXPECT_EQ(subnet.layout_leaf, LayoutLeaf(subnet));
  }
  EXPECT_EQ(reader->Subnet(2, {})->value().step, SampleStep(2).facts);
  EXPECT_EQ(reader->HeadNow()->subnets, 4);
}

TEST_F(StepRecorderTest, WhatIsNotRecordedIsAbsent) {
  const auto recorder = OpenSampleSteps(path_, "weights");
  StepRow bare;
  bare.facts.step = 5;
  for (int layer = 0; layer < 3; ++layer)
    bare.layers.push_back({layer, SampleDigest(layer), {}, {}});
  ASSERT_TRUE(recorder->Record(bare));
  ASSERT_TRUE(recorder->Close(RunStatus::kInterrupted, "enough"));
  const auto subnets = Read();
  ASSERT_EQ(subnets.size(), 1u);
  EXPECT_EQ(subnets[0].step, bare.facts);
  EXPECT_EQ(subnets[0].loss_bits, 0x7fc00000u);
  EXPECT_EQ(subnets[0].batch_digest, Digest{});
  EXPECT_FALSE(subnets[0].accesses[0].optimizer_state);
}

TEST_F(StepRecorderTest, LossesAloneHaveAccessesWithoutDigests) {
  WriteSampleSteps(path_, 2, "losses");
  const auto subnets = Read();
  ASSERT_EQ(subnets.size(), 2u);
  const AccessRow expected{2, 0, 0, 0, {}, {}, {}};
  EXPECT_EQ(subnets[1].accesses.at(2), expected);
}

// Equal runs have equal roots and content digests, whoever recorded them and when.
TEST_F(StepRecorderTest, EqualRunsHaveEqualContent) {
  WriteSampleSteps(path_);
  WriteSampleSteps(folder_ / "again.db");
  const auto a = *RecordReader::Open(path_);
  const auto b = *RecordReader::Open(folder_ / "again.db");
  EXPECT_EQ(a->HeadNow()->content_root, b->HeadNow()->content_root);
  EXPECT_EQ(*ContentDigest(*a), *ContentDigest(*b));
}

TEST_F(StepRecorderTest, EveryFactIsContent) {
  WriteSampleSteps(path_);
  const SubnetRow subnet = Read().at(1);
  const auto leaf = [&](auto change) {
    SubnetRow changed = subnet;
    change(*changed.step);
    return ContentLeaf(changed);
  };
  EXPECT_EQ(leaf([](StepFacts&) {}), subnet.content_leaf);
  EXPECT_NE(leaf([](StepFacts& facts) { facts.step = 11; }), subnet.content_leaf);
  EXPECT_NE(leaf([](StepFacts& facts) { facts.random_state.reset(); }), subnet.content_leaf);
  EXPECT_NE(leaf([](StepFacts& facts) { facts.settings["lr"] = "0.2"; }), subnet.content_leaf);
  EXPECT_NE(leaf([](StepFacts& facts) { facts.outside = {1}; }), subnet.content_leaf);
  EXPECT_NE(leaf([](StepFacts& facts) { facts.parts.pop_back(); }), subnet.content_leaf);
}

TEST_F(StepRecorderTest, HeadsAreKeptWhileItRuns) {
  StepRecorderOptions options;
  options.head_file = folder_ / "heads";
  options.head_every = 2;
  const auto recorder = OpenSampleSteps(path_, "full", options);
  for (int index = 0; index < 4; ++index) ASSERT_TRUE(recorder->Record(SampleStep(index)));
  ASSERT_TRUE(recorder->Close(RunStatus::kComplete, ""));
  const auto heads = ReadHeads(options.head_file);
  ASSERT_TRUE(heads) << heads.error().message;
  EXPECT_EQ(heads->back().content_root, (*RecordReader::Open(path_))->HeadNow()->content_root);
  EXPECT_TRUE(heads->back().end);
  options.overwrite = true;
  const auto again =
      StepRecorder::Open(path_, SampleStepRun(), SampleStepLayers(), SampleEnvironment(), options);
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr("heads of an earlier run"));
}

TEST_F(StepRecorderTest, HeadsAreNotWrittenIntoTheRecord) {
  for (const fs::path& file : {path_, folder_ / "." / "run.db", fs::relative(path_)}) {
    StepRecorderOptions options;
    options.head_file = file;
    const auto recorder =
        StepRecorder::Open(path_, SampleStepRun(), SampleStepLayers(), {}, options);
    ASSERT_FALSE(recorder) << file;
    EXPECT_EQ(recorder.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(recorder.error().message, HasSubstr("written into the record"));
    EXPECT_FALSE(fs::exists(path_));
  }
}

TEST_F(StepRecorderTest, RefusesARunThatDoesNotFitTogether) {
  const auto changed_run = [&](auto change) {
    StepRun run = SampleStepRun();
    change(run);
    return OpenError(run, SampleStepLayers());
  };
  const auto changed_layers = [&](auto change) {
    std::vector<StepLayer> layers = SampleStepLayers();
    change(layers);
    return OpenError(SampleStepRun(), layers);
  };
  const std::pair<Error, const char*> cases[] = {
      {changed_run([](StepRun& run) { run.spec.every = 0; }), "every is 0"},
      {changed_run([](StepRun& run) { run.spec.rank = 1; }), "rank is 1 of 1"},
      {changed_run([](StepRun& run) { run.spec.world_size = 0; }), "world_size is 0"},
      {changed_run([](StepRun& run) { run.record_level = "all"; }), "record level 'all'"},
      {changed_run([](StepRun& run) { run.record_level = "weights"; }), "gradients need"},
      {changed_run([](StepRun& run) {
         run.record_level = "weights";
         run.spec.gradients = false;
       }),
       "captured tensor 'fc output' needs"},
      {changed_run([](StepRun& run) { run.steps_planned = -1; }), "-1 steps are planned"},
      {changed_layers([](auto& layers) { layers[1].name = "fc.weight"; }),
       "two layers are called 'fc.weight'"},
      {changed_layers([](auto& layers) { layers[1].name = ""; }), "layer 1 has no name"},
      {changed_layers([](auto& layers) { layers[0].placement = "shard (0) also b"; }),
       "its placement 'shard (0) also b' holds ') also '"},
      {changed_layers([](auto& layers) { layers[0].shape = {-1}; }),
       "layer 'fc.weight': its dtype"},
      {changed_layers([](auto& layers) { layers[0].dtype = static_cast<DType>(99); }),
       "(number 99)"},
      {OpenError(SampleStepRun(), SampleStepLayers(), {{"a", "1"}, {"a", "2"}}),
       "the environment has 'a' twice"},
  };
  for (const auto& [error, problem] : cases) {
    EXPECT_EQ(error.kind, ErrorKind::kUsage);
    EXPECT_THAT(error.message, HasSubstr(problem));
  }
}

TEST_F(StepRecorderTest, RefusesAStepThatDoesNotFitAndGoesOn) {
  const auto recorder = OpenSampleSteps(path_);
  ASSERT_TRUE(recorder->Record(SampleStep(1)));
  const auto refuse = [&](const char* problem, auto change) {
    StepRow row = SampleStep(2);
    change(row);
    const Status recorded = recorder->Record(row);
    ASSERT_FALSE(recorded) << problem;
    EXPECT_EQ(recorded.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(recorded.error().message, HasSubstr(problem));
  };
  refuse("step 10 comes after step 10", [](StepRow& row) { row.facts.step = 10; });
  refuse("step 9 comes after step 10", [](StepRow& row) { row.facts.step = 9; });
  refuse("step -1 is not in", [](StepRow& row) { row.facts.step = -1; });
  refuse("step 9007199254740992 is not in",
         [](StepRow& row) { row.facts.step = std::int64_t{1} << 53; });
  refuse("lacks layer 2 ('norm.count')", [](StepRow& row) { row.layers.pop_back(); });
  refuse("lacks layer 0 ('fc.weight')", [](StepRow& row) { row.layers.erase(row.layers.begin()); });
  refuse("lacks layer 0", [](StepRow& row) { std::swap(row.layers[0], row.layers[1]); });
  refuse("4 layers have digests, of 3", [](StepRow& row) {
    row.layers.push_back({3, SampleDigest(0), {}, {}});
  });
  refuse("'fc.bias' lacks a digest of its weights",
         [](StepRow& row) { row.layers[1].weights.reset(); });
  refuse("'norm.count' has a digest of optimizer state",
         [](StepRow& row) { row.layers[2].optimizer_state = SampleDigest(0); });
  refuse("'norm.count' has a digest of gradients",
         [](StepRow& row) { row.layers[2].gradients = SampleDigest(0); });
  refuse("layer 3, written from outside", [](StepRow& row) { row.facts.outside = {3}; });
  refuse("layer -1, written from outside", [](StepRow& row) { row.facts.outside = {-1}; });
  refuse("layer 4, written from outside", [](StepRow& row) { row.facts.outside = {4}; });
  refuse("what step 20 says of itself", [](StepRow& row) { row.facts.outside = {2, 0}; });
  refuse("what step 20 says of itself", [](StepRow& row) { row.facts.settings["lr"] = "0.10"; });
  refuse("what step 20 says of itself", [](StepRow& row) { row.facts.settings["lr"] = "nan"; });
  refuse("captured layer 2", [](StepRow& row) { row.captured[0].position = 2; });
  refuse("captured layer 9", [](StepRow& row) { row.captured[0].position = 9; });
  refuse("occurrence -1", [](StepRow& row) { row.captured[0].microbatch = -1; });
  refuse("captured 'fc output' twice", [](StepRow& row) { row.captured[0].microbatch = 0; });
  EXPECT_EQ(recorder->recorded(), 1);
  ASSERT_TRUE(recorder->Record(SampleStep(2)));
  ASSERT_TRUE(recorder->Close(RunStatus::kComplete, ""));
  EXPECT_THAT(RecordedSteps(), ElementsAre(10, 20));
}

TEST_F(StepRecorderTest, DigestsThatTheSpecDoesNotHaveAreRefused) {
  StepRun run = SampleStepRun("weights");
  run.spec.optimizer_state = false;
  auto recorder = *StepRecorder::Open(path_, run, SampleStepLayers("weights"), {});
  EXPECT_THAT(recorder->Record(SampleStep(0, "weights")).error().message,
              HasSubstr("has a digest of optimizer state"));
  run = SampleStepRun("losses");
  recorder = *StepRecorder::Open(folder_ / "b.db", run, SampleStepLayers("losses"), {});
  EXPECT_THAT(recorder->Record(SampleStep(0, "weights")).error().message,
              HasSubstr("'losses' has no digests"));
}

TEST_F(StepRecorderTest, NothingHappensAfterTheEnd) {
  const auto recorder = OpenSampleSteps(path_);
  EXPECT_THAT(recorder->Close(RunStatus::kRunning, "").error().message, HasSubstr("as running"));
  ASSERT_TRUE(recorder->Close(RunStatus::kFailed, "the loss is NaN"));
  EXPECT_THAT(recorder->Record(SampleStep(0)).error().message, HasSubstr("closed"));
  EXPECT_THAT(recorder->Close(RunStatus::kComplete, "").error().message, HasSubstr("closed"));
  const RunInfo run = *(*RecordReader::Open(path_))->Run();
  EXPECT_EQ(run.status, RunStatus::kFailed);
  EXPECT_EQ(run.status_detail, "the loss is NaN");
}

TEST_F(StepRecorderTest, OneFileHasOneRecorder) {
  auto recorder = OpenSampleSteps(path_);
  const auto open = [&](bool overwrite) {
    StepRecorderOptions options;
    options.overwrite = overwrite;
    return StepRecorder::Open(path_, SampleStepRun(), SampleStepLayers(), {}, options);
  };
  EXPECT_EQ(open(false).error().kind, ErrorKind::kUsage);
  EXPECT_EQ(open(true).error().kind, ErrorKind::kFailed);
  EXPECT_THAT(open(true).error().message, HasSubstr("in use"));
  ASSERT_TRUE(recorder->Record(SampleStep(0)));
  recorder.reset();
  EXPECT_EQ((*RecordReader::Open(path_))->Run()->status, RunStatus::kRunning);
  EXPECT_THAT(RecordedSteps(), ElementsAre(0));
  EXPECT_TRUE(open(true));
}

TEST_F(StepRecorderTest, AStepRunIsNotGoneOnWith) {
  WriteSampleSteps(path_);
  const auto reopened = RecordWriter::Reopen(path_, {});
  ASSERT_FALSE(reopened);
  EXPECT_EQ(reopened.error().kind, ErrorKind::kUsage);
}

TEST_F(StepRecorderTest, AChildOfForkLeavesTheRecordAlone) {
  auto recorder = OpenSampleSteps(path_);
  ASSERT_TRUE(recorder->Record(SampleStep(0)));
  const pid_t child = fork();
  if (child == 0) {
    const bool is_refused =
        !recorder->Record(SampleStep(1)) && !recorder->Close(RunStatus::kFailed, "by the child");
    recorder.reset();
    _exit(is_refused ? 0 : 1);
  }
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0);
  ASSERT_TRUE(recorder->Record(SampleStep(1)));
  ASSERT_TRUE(recorder->Close(RunStatus::kComplete, ""));
  EXPECT_THAT(RecordedSteps(), ElementsAre(0, 10));
  EXPECT_EQ((*RecordReader::Open(path_))->Run()->status, RunStatus::kComplete);
}

// A data loader's worker may outlive the recorder that its parent has closed.
TEST_F(StepRecorderTest, AChildKeepsNoLock) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  {
    const auto recorder = OpenSampleSteps(path_);
    const pid_t child = fork();
    if (child == 0) {
      close(ends[1]);
      char byte;
      _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
    }
    ASSERT_TRUE(recorder->Close(RunStatus::kComplete, ""));
  }
  StepRecorderOptions options;
  options.overwrite = true;
  EXPECT_TRUE(StepRecorder::Open(path_, SampleStepRun(), SampleStepLayers(), {}, options));
  close(ends[1]);
  int state = 0;
  wait(&state);
  EXPECT_EQ(state, 0);
  close(ends[0]);
}

TEST_F(StepRecorderTest, ThreadsMayShareIt) {
  const auto recorder = OpenSampleSteps(path_, "losses");
  std::atomic<int> taken = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int index = 0; index < 50; ++index) {
        taken += recorder->Record(SampleStep(index, "losses")) ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(recorder->Close(RunStatus::kComplete, ""));
  EXPECT_EQ(std::ssize(RecordedSteps()), taken);
  EXPECT_EQ(recorder->recorded(), taken);
  EXPECT_EQ(RecordedSteps().back(), 490);
}

TEST_F(StepRecorderTest, ARecordThatCannotBeWrittenIsAnError) {
  EXPECT_EQ(StepRecorder::Open(folder_ / "none/run.db", SampleStepRun(), SampleStepLayers(), {})
                .error()
                .kind,
            ErrorKind::kUsage);
  fs::permissions(folder_.path(), fs::perms(0755));
  fs::create_directory(folder_ / "closed");
  fs::permissions(folder_ / "closed", fs::perms(0555));
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && setuid(65534) != 0) _exit(100);
    const auto recorder =
        StepRecorder::Open(folder_ / "closed/run.db", SampleStepRun(), SampleStepLayers(), {});
    _exit(!recorder && recorder.error().kind == ErrorKind::kFailed ? 0 : 1);
  }
  int state = 0;
  waitpid(child, &state, 0);
  EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0) << state;
}

// A limit on the size of files stands for a full disk.
TEST_F(StepRecorderTest, AFullDiskIsAnErrorAndWhatWasCommittedStays) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 20, 1 << 20};
    const auto recorder = OpenSampleSteps(path_);
    if (!recorder || setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(100);
    Status recorded;
    for (int index = 0; index < 100'000 && recorded; ++index) {
      StepRow row = SampleStep(index % 2);
      row.facts.step = index;
      recorded = recorder->Record(row);
    }
    if (recorded || recorded.error().kind != ErrorKind::kFailed) _exit(101);
    if (recorder->Record(SampleStep(0))) _exit(102);
    _exit(recorder->Close(RunStatus::kComplete, "") ? 103 : 0);
  }
  int state = 0;
  waitpid(child, &state, 0);
  EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0) << state;
  EXPECT_GT(RecordedSteps().size(), 100u);
}

}  // namespace
}  // namespace verbatim
