// A small step run with every kind of layer and fact.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "recorder/step_recorder.h"
#include "tests/store/sample_record.h"

namespace verbatim::test {

inline StepRun SampleStepRun(const std::string& level = "full") {
  StepRun run;
  run.spec.name = "sample";
  run.spec.seed = 7;
  run.spec.every = 10;
  run.spec.gradients = level == "full";
  run.spec.settings = {{"optimizer", SettingText("sgd")}, {"batch", SettingText(std::int64_t{32})}};
  run.record_level = level;
  run.tool_version = "0.1.0";
  run.folder = "/runs";
  run.command_line = "trainer --fast";
  run.steps_planned = 4;
  return run;
}

/// Two parameters, the second under two names, a buffer, and at level `full` a captured tensor.
inline std::vector<StepLayer> SampleStepLayers(const std::string& level = "full") {
  std::vector<StepLayer> layers = {
      {StepLayerKind::kParameter, "fc.weight", DType::kFloat32, {4, 3}, "", {}, SampleDigest(1)},
      {StepLayerKind::kParameter,
       "fc.bias",
       DType::kBFloat16,
       {4},
       "shard 0 of 2",
       {"out.bias"},
       SampleDigest(2)},
      {StepLayerKind::kBuffer, "norm.count", DType::kInt64, {}, "", {}, SampleDigest(3)},
      {StepLayerKind::kCaptured, "fc output", DType::kFloat32, {}, "", {}, {}}};
  if (level != "full") layers.pop_back();
  return layers;
}

/// The index-th recorded step, whose own number is 10 * index.
inline StepRow SampleStep(int index, const std::string& level = "full") {
  StepRow row;
  row.facts.step = 10 * index;
  row.facts.random_state = SampleDigest(10 + index);
  row.facts.settings = {{"lr", SettingText(0.1)}};
  if (index == 2) row.facts.outside = {0, 2};
  if (index == 1) row.facts.parts = {SampleDigest(20), SampleDigest(21)};
  row.loss_bits = 0x3f800000u + static_cast<std::uint32_t>(index);
  row.batch = SampleDigest(30 + index);
  for (int layer = 0; layer < 3 && level != "losses"; ++layer) {
    StepDigests digests{layer, SampleDigest(40 + 10 * index + layer), {}, {}};
    if (layer < 2) digests.optimizer_state = SampleDigest(100 + 10 * index + layer);
    if (layer < 2 && level == "full") digests.gradients = SampleDigest(160 + 10 * index + layer);
    row.layers.push_back(digests);
  }
  if (level == "full") {
    row.captured = {{1, 3, SampleDigest(221)}, {0, 3, SampleDigest(220 + index)}};
  }
  return row;
}

inline std::unique_ptr<StepRecorder> OpenSampleSteps(const std::filesystem::path& path,
                                                     const std::string& level = "full",
                                                     const StepRecorderOptions& options = {}) {
  auto recorder = StepRecorder::Open(path, SampleStepRun(level), SampleStepLayers(level),
                                     SampleEnvironment(), options);
  EXPECT_TRUE(recorder) << (recorder ? "" : recorder.error().message);
  return recorder ? *std::move(recorder) : nullptr;
}

/// A complete record of `count` steps.
inline void WriteSampleSteps(const std::filesystem::path& path, int count = 4,
                             const std::string& level = "full") {
  const auto recorder = OpenSampleSteps(path, level);
  ASSERT_NE(recorder, nullptr);
  for (int index = 0; index < count; ++index) {
    const Status recorded = recorder->Record(SampleStep(index, level));
    ASSERT_TRUE(recorded) << recorded.error().message;
  }
  ASSERT_TRUE(recorder->Close(RunStatus::kComplete, ""));
}

}  // namespace verbatim::test
