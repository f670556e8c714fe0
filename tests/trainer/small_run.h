// Small experiments on the shipped digits, and runs of them with their records.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "recorder/content_digest.h"
#include "recorder/recorder.h"
#include "recorder/subnet_assembler.h"
#include "store/reader.h"
#include "tests/temporary_folder.h"
#include "trainer/environment.h"
#include "trainer/experiment.h"
#include "trainer/training.h"

namespace verbatim {

/// Eight positions: a convolution stem, six blocks (one a reduction), a classifier with dropout.
inline Spec SmallSpec() {
  const Result<Spec> spec = ParseSpec(R"({
    "name": "small", "seed": 1,
    "data": {"format": "idx", "folder": "digits", "mean": 4.9, "std": 6},
    "supernet": {
      "stem": {"op": "conv", "channels": 4},
      "blocks": [
        {"repeat": 3, "residual": true, "candidates": [
          {"op": "conv"}, {"op": "separable_conv", "kernel": 5},
          {"op": "mbconv", "expansion": 2}, {"op": "skip"}]},
        {"stride": 2, "channels": 6, "candidates": [
          {"op": "conv", "dilation": 1}, {"op": "mbconv", "expansion": 1}]},
        {"repeat": 2, "candidates": [
          {"op": "conv", "groups": 2}, {"op": "max_pool"}, {"op": "separable_conv"}]}],
      "head": {"op": "classifier", "dropout": 0.25}},
    "training": {"subnets": 16, "batch": 12, "microbatches": 1,
      "optimizer": {"kind": "sgd", "momentum": 0.9, "weight_decay": 0.001},
      "lr": {"kind": "cosine", "base": 0.05, "warmup": 4}},
    "evaluation": {"subnets": 2, "calibration_batches": 2}})",
                                      "small.json");
  EXPECT_TRUE(spec.has_value()) << spec.error().message;
  return *spec;
}

/// Seven positions on text: two encoder blocks, three decoder blocks, a head tied to the stem.
inline Spec SmallTextSpec() {
  const Result<Spec> spec = ParseSpec(R"({
    "name": "text", "seed": 3,
    "data": {"format": "text", "folder": "text", "file": "corpus.txt", "length": 16, "source": 6,
             "holdout": 0.01},
    "supernet": {
      "stem": {"op": "embedding", "features": 8, "dropout": 0.1},
      "blocks": [
        {"part": "encoder", "repeat": 2, "residual": true, "candidates": [
          {"op": "conv1d"}, {"op": "attention", "heads": 2}, {"op": "glu"}]},
        {"repeat": 3, "residual": true, "candidates": [
          {"op": "separable_conv1d", "kernel": 5}, {"op": "cross_attention", "heads": 2},
          {"op": "lightweight_conv", "heads": 8}, {"op": "attention", "dropout": 0.2},
          {"op": "ffn", "hidden": 12}, {"op": "skip"}]}],
      "head": {"op": "classifier", "tied": true}},
    "training": {"subnets": 16, "batch": 9, "microbatches": 3, "label_smoothing": 0.1,
      "optimizer": {"kind": "adamw"}, "lr": {"kind": "constant", "base": 0.01}},
    "evaluation": {"subnets": 1}})",
                                      "text.json");
  EXPECT_TRUE(spec.has_value()) << spec.error().message;
  return *spec;
}

inline Experiment MakeExperiment(const Spec& spec) {
  ConfigureDeterminism();
  auto experiment = PrepareExperiment(spec, VERBATIM_EXAMPLES, std::nullopt, {at::kCPU});
  EXPECT_TRUE(experiment.has_value()) << experiment.error().message;
  return *std::move(experiment);
}

/// Trains `spec` under `options` into a real record and returns its content digest.
inline std::string RecordedContent(const Spec& spec, TrainingOptions options) {
  Experiment experiment = MakeExperiment(spec);
  const test::TemporaryFolder folder;
  const std::filesystem::path path = folder / "run.db";
  RunInfo run;
  run.spec_json = SpecToJson(spec);
  run.policy = options.policy;
  run.record_level = ToString(options.record_level);
  run.device = "cpu";
  run.subnets_planned = spec.training.subnets;
  run.started_utc = "2026-01-01T00:00:00Z";
  auto writer = RecordWriter::Create(path, run, {}, DescribeLayers(experiment), false);
  EXPECT_TRUE(writer.has_value()) << writer.error().message;
  const auto recorder = Recorder::Start(*std::move(writer));
  options.observer = recorder.get();
  const auto outcome = Train(experiment, options);
  EXPECT_TRUE(outcome.has_value());
  EXPECT_EQ(outcome->status, RunStatus::kComplete) << outcome->detail;
  EXPECT_TRUE(recorder->Close(outcome->status, outcome->detail, {}).has_value());
  const auto reader = RecordReader::Open(path);
  EXPECT_TRUE(reader.has_value());
  EXPECT_EQ((*reader)->SubnetCount().value(), spec.training.subnets);
  return ToHex(ContentDigest(**reader).value());
}

/// Trains `spec` under `options` and returns the rows in order of seq.
inline std::vector<SubnetRow> TrainedRows(Experiment& experiment, TrainingOptions options,
                                          TrainingOutcome* outcome = nullptr) {
  std::map<std::int64_t, SubnetRow> rows;
  std::mutex mutex;
  SubnetAssembler assembler([&](SubnetRow&& row) -> Status {
    const std::lock_guard lock(mutex);
    rows[row.seq] = std::move(row);
    return {};
  });
  options.observer = &assembler;
  const auto result = Train(experiment, options);
  EXPECT_TRUE(result.has_value());
  if (outcome) *outcome = *result;
  std::vector<SubnetRow> ordered;
  for (auto& [seq, row] : rows) ordered.push_back(std::move(row));
  return ordered;
}

inline TrainingOptions SequentialOptions() {
  TrainingOptions options;
  options.policy = "sequential";
  options.in_flight = 1;
  return options;
}

}  // namespace verbatim
