// A device that has no memory left in the middle of a subnet: the run fails, says where and what
// needs less, and what it had recorded stays as it is.
#include "trainer/out_of_memory.h"

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/random_delays.h"
#include "tests/trainer/small_run.h"

namespace verbatim {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

void ThrowOutOfMemory() {
  TORCH_CHECK_WITH(OutOfMemoryError, false, "CUDA out of memory. Tried to allocate 20.00 MiB");
}

/// Throws in one task of a stage, in the middle of its layers.
class FullDevice : public RandomDelays {
 public:
  FullDevice(int stage, const Task& task) : RandomDelays(1), stage_(stage), task_(task) {}

  void BeforeTask(int stage, const Task& task) override {
    executed_ = {stage, task};
    RandomDelays::BeforeTask(stage, task);
    if (task.kind == TaskKind::kBackward) ThrowIfHere();
  }
  void OnForward(std::int64_t, std::int32_t, const Layer&, const at::Tensor&) override {
    ThrowIfHere();
  }
  void BeforeUpdate(std::int64_t, const Layer&, std::span<const at::Tensor>, LayerState&) override {
    ThrowIfHere();
  }

 private:
  void ThrowIfHere() const {
    if (executed_ == std::pair(stage_, task_)) ThrowOutOfMemory();
  }

  const int stage_;
  const Task task_;
  inline static thread_local std::pair<int, Task> executed_;
};

/// What a run left that ended there, and its record.
struct EndedRun {
  TrainingOutcome outcome;
  std::vector<std::string> contents;  ///< of the subnets in the record
  RunStatus status = RunStatus::kComplete;
};

EndedRun RecordUntilFull(const Spec& spec, TrainingOptions options) {
  Experiment experiment = MakeExperiment(spec);
  const test::TemporaryFolder folder;
  RunInfo run;
  run.spec_json = SpecToJson(spec);
  run.started_utc = "2026-01-01T00:00:00Z";
  run.subnets_planned = spec.training.subnets;
  auto writer = RecordWriter::Create(folder / "run.db", run, {}, DescribeLayers(experiment), false);
  EXPECT_TRUE(writer.has_value()) << writer.error().message;
  const auto recorder = Recorder::Start(*std::move(writer));
  options.observer = recorder.get();
  EndedRun ended;
  ended.outcome = *Train(experiment, options);
  EXPECT_TRUE(recorder->Close(ended.outcome.status, ended.outcome.detail, {}).has_value());
  const auto reader = RecordReader::Open(folder / "run.db");
  EXPECT_TRUE(reader.has_value()) << reader.error().message;
  EXPECT_EQ((*reader)->IntegrityProblems(), std::vector<std::string>());
  ended.status = (*reader)->Run()->status;
  for (std::int64_t seq = 0; seq < spec.training.subnets; ++seq) {
    const auto row = (*reader)->Subnet(seq, ReadOptions{});
    EXPECT_TRUE(row.has_value());
    if (*row) ended.contents.push_back(EncodeSubnetContent(**row));
  }
  return ended;
}

TEST(OutOfMemoryTest, ARunSaysWhereAndItsRecordStaysIntact) {
  Spec spec = SmallSpec();
  spec.training.microbatches = 2;
  Experiment reference = MakeExperiment(spec);
  std::set<std::string> expected;
  for (const SubnetRow& row : TrainedRows(reference, SequentialOptions())) {
    expected.insert(EncodeSubnetContent(row));
  }
  for (const TaskKind kind : {TaskKind::kForward, TaskKind::kBackward, TaskKind::kUpdate}) {
    for (const bool is_bounded : {false, true}) {
      SCOPED_TRACE(::testing::Message() << NameOf(kind) << ", bounded " << is_bounded);
      TrainingOptions options;
      options.stages = 3;
      options.in_flight = 5;
      if (is_bounded) options.device_memory = *LeastDeviceMemoryOf(reference, options);
      FullDevice probe(1, Task{kind, 9, 1});
      options.probe = &probe;
      const EndedRun ended = RecordUntilFull(spec, options);
      EXPECT_EQ(ended.outcome.status, RunStatus::kFailed);
      EXPECT_THAT(ended.outcome.detail,
                  AllOf(StartsWith(fmt::format("stage 1, {} of subnet 9, micro-batch 1: out of "
                                               "memory: CUDA out of memory. Tried to allocate "
                                               "20.00 MiB; to hold less: ",
                                               NameOf(kind))),
                        HasSubstr("--device-memory"), HasSubstr("--in-flight 5"),
                        HasSubstr("--recompute all")));
      if (is_bounded) {
        EXPECT_THAT(ended.outcome.detail, HasSubstr(std::to_string(*options.device_memory)));
      }
      EXPECT_EQ(ended.status, RunStatus::kFailed);
      EXPECT_EQ(std::ssize(ended.contents), ended.outcome.subnets);
      EXPECT_LT(ended.outcome.subnets, spec.training.subnets);
      for (const std::string& content : ended.contents) EXPECT_TRUE(expected.contains(content));
    }
  }
}

TEST(OutOfMemoryTest, ACopyThreadSaysWhatNeedsLess) {
  class FullStage : public StageProbe {
    void BeforeTransfer(const Transfer&) override { ThrowOutOfMemory(); }
  } probe;
  Experiment experiment = MakeExperiment(SmallSpec());
  TrainingOptions options;
  options.device_memory = *LeastDeviceMemoryOf(experiment, options);
  options.probe = &probe;
  const auto outcome = Train(experiment, options);
  ASSERT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->status, RunStatus::kFailed);
  EXPECT_THAT(outcome->detail,
              AllOf(StartsWith("stage 0, moving layers in: out of memory: CUDA out of memory"),
                    HasSubstr("a smaller --device-memory than ")));
}

TEST(OutOfMemoryTest, WhatIsOneIsToldFromOtherFailures) {
  EXPECT_TRUE(IsOutOfMemory(std::bad_alloc()));
  EXPECT_FALSE(IsOutOfMemory(std::runtime_error("a shape that is none")));
  try {
    at::empty({std::int64_t{1} << 60}, at::kByte);
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_TRUE(IsOutOfMemory(error)) << error.what();
  }
  TrainingOptions least;
  least.in_flight = 1;
  least.recompute = "all";
  EXPECT_THAT(StageFailure(2, std::nullopt, std::bad_alloc(), least),
              AllOf(StartsWith("stage 2: out of memory: "),
                    EndsWith("to hold less: --device-memory BYTES (some of the layers only)")));
  EXPECT_EQ(StageFailure(2, Task{}, std::runtime_error("no luck\nat 0x1"), least),
            "stage 2: no luck");
}

}  // namespace
}  // namespace verbatim
