// Proves that a bad spec is refused with place, field, reason and what to do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "supernet/spec.h"
#include "tests/supernet/spec_text.h"

namespace verbatim {
namespace {

using ::testing::HasSubstr;

/// Lines of SpecText: top 2, data 3, stem 5, block 7, head 8, sizes 10, optimizer 11, lr 12.
struct Case {
  std::string SpecText::*part;
  const char* text;
  const char* message;  ///< after "test.json:"
  const char* hint = "";
};

void ExpectRefused(const Case& c) {
  SpecText text;
  text.*c.part = c.text;
  const auto spec = ParseSpec(text.Text(), "test.json");
  ASSERT_FALSE(spec) << c.text;
  EXPECT_EQ(spec.error().kind, ErrorKind::kBadInput);
  EXPECT_EQ(spec.error().message, std::string("test.json:") + c.message) << c.text;
  EXPECT_THAT(spec.error().hint, HasSubstr(c.hint)) << c.text;
}

TEST(SpecErrors, Document) {
  const Case cases[] = {
      {&SpecText::top, R"("sead": 1)", "2:1: sead: unknown field", "did you mean \"seed\"?"},
      {&SpecText::top, R"("stages": 4)", "2:1: stages: unknown field", "allowed: name, seed,"},
      {&SpecText::top, R"("seed": -1)", "2:9: seed: must be at least 0, found -1"},
      {&SpecText::top, R"("seed": 1.5)", "2:9: seed: expected an integer, found 1.5"},
      {&SpecText::top, R"("seed": "1")", "2:9: seed: expected an integer, found a string"},
      {&SpecText::top, R"("seed": 18446744073709551616)",
       "2:9: seed: 18446744073709551616 does not fit into 64 bits"},
      {&SpecText::top, R"("seed": 1, "seed": 1)", "2:12: \"seed\" is given twice, first in line 2"},
      {&SpecText::top, R"("numerics": "x86_64")", "2:13: numerics: unknown value \"x86_64\"",
       "did you mean \"x86-64\"?"},
      {&SpecText::top, R"("record": {"level": "all"})", "2:21: record.level: unknown value \"all\"",
       "allowed: losses, weights, full"},
      {&SpecText::top, R"("record": "full")", "2:11: record: expected an object, found a string"},
      {&SpecText::top, R"("sampler": {"kind": "uniform", "file": "x"})",
       "2:32: sampler.file: unknown field"},
      {&SpecText::top, R"("sampler": {"kind": "list"})",
       "2:12: sampler.file: required, but missing"},
      {&SpecText::top, R"("sampler": {})", "2:12: sampler.kind: required, but missing"},
      {&SpecText::top, R"("evaluation": {"subnets": -1})",
       "2:27: evaluation.subnets: must be from 0 to 4294967295, found -1"},
      {&SpecText::top, R"("seed" 1)",
       "2:8: syntax error while parsing object separator - "
       "unexpected number literal; expected ':'"},
  };
  for (const Case& c : cases) ExpectRefused(c);
}

TEST(SpecErrors, Samplers) {
  const Case cases[] = {
      {&SpecText::top, R"("sampler": {"kind": "fare"})",
       "2:21: sampler.kind: unknown value \"fare\"", "allowed: uniform, list, fair, reorder"},
      {&SpecText::top, R"("sampler": {"kind": "fair", "window": 3})",
       "2:29: sampler.window: unknown field"},
      {&SpecText::top, R"("sampler": {"kind": "fair", "reuse_distance": -1})",
       "2:47: sampler.reuse_distance: must be from 0 to 65536, found -1"},
      {&SpecText::top, R"("sampler": {"kind": "fair", "reuse_distance": 3})",
       "2:47: sampler.reuse_distance: supernet.blocks[0] has 2 candidates, so that one of them is "
       "used again after at most 2 subnets, not 3",
       "leave it out"},
      {&SpecText::top, R"("sampler": {"kind": "reorder"})",
       "2:12: sampler.of: required, but missing"},
      {&SpecText::top, R"("sampler": {"kind": "reorder", "of": "uniform"})",
       "2:38: sampler.of: expected an object, found a string"},
      {&SpecText::top, R"("sampler": {"kind": "reorder", "of": {"kind": "uniform"}, "window": 0})",
       "2:69: sampler.window: must be from 1 to 65536, found 0"},
      {&SpecText::top,
       R"("sampler": {"kind": "reorder", "of": {"kind": "uniform"}, "neighbours": 1025})",
       "2:73: sampler.neighbours: must be from 1 to 1024, found 1025"},
      {&SpecText::top,
       R"("sampler": {"kind": "reorder", "of": {"kind": "fair", "reuse_distance": 3}})",
       "2:73: sampler.of.reuse_distance: supernet.blocks[0] has 2 candidates, so that one of them "
       "is used again after at most 2 subnets, not 3"},
      {&SpecText::top, R"("sampler": {"kind": "reorder", "of": {"kind": "list"}})",
       "2:38: sampler.of.file: required, but missing"},
      {&SpecText::top,
       R"("sampler": {"kind": "reorder", "of": {"kind": "reorder", "of": {"kind": "uniform"}}})",
       "2:38: sampler.of: a reordered sampler cannot be reordered", "\"fair\""},
      {&SpecText::stem, R"({"op": "conv", "delay": 65537})",
       "5:33: supernet.stem.delay: must be from 0 to 65536, found 65537"},
      {&SpecText::block, R"({"delay": -1, "candidates": [{"op": "skip"}]})",
       "7:11: supernet.blocks[0].delay: must be from 0 to 65536, found -1"},
      {&SpecText::head, R"({"op": "classifier", "delay": 0.5})",
       "8:39: supernet.head.delay: expected an integer, found 0.5"},
  };
  for (const Case& c : cases) ExpectRefused(c);
}

TEST(SpecErrors, Data) {
  const Case cases[] = {
      {&SpecText::data, R"({"format": "idx"})", "3:9: data.folder: required, but missing"},
      {&SpecText::data, R"({"format": "idx", "folder": ""})",
       "3:37: data.folder: must not be empty"},
      {&SpecText::data, R"({"format": "cifar", "folder": "d"})",
       "3:20: data.format: unknown value \"cifar\"", "did you mean \"cifar10\"?"},
      {&SpecText::data, R"({"format": "idx", "folder": "d", "holdout": 1})",
       "3:53: data.holdout: must be at least 0 and below 1, found 1"},
      {&SpecText::data, R"({"format": "idx", "folder": "d", "std": [1, 0]})",
       "3:53: data.std[1]: must be above 0, as a float32 too"},
      {&SpecText::data, R"({"format": "idx", "folder": "d", "std": 1e-60})",
       "3:49: data.std: must be above 0, as a float32 too"},
      {&SpecText::data, R"({"format": "idx", "folder": "d", "mean": []})",
       "3:50: data.mean: must hold one number, or one per channel"},
      {&SpecText::data, R"({"format": "idx", "folder": "d", "mean": 1e39})",
       "3:50: data.mean: too large for float32"},
      {&SpecText::data, R"({"format": "idx", "folder": "d", "mean": "0"})",
       "3:50: data.mean: expected a number, found a string"},
      {&SpecText::data, R"({"format": "idx", "folder": "d", "mean": 1e999})",
       "3:50: number overflow parsing '1e999'"},
  };
  for (const Case& c : cases) ExpectRefused(c);
}

TEST(SpecErrors, Supernet) {
  const Case cases[] = {
      {&SpecText::block, R"({"candidates": [{"op": "conv"}, {"op": "conv", "kernal": 3}]})",
       "7:48: supernet.blocks[0].candidates[1].kernal: unknown field", "did you mean \"kernel\"?"},
      {&SpecText::block, R"({"candidates": [{"op": "conv", "expansion": 3}]})",
       "7:32: supernet.blocks[0].candidates[0].expansion: unknown field",
       "allowed: op, kernel, dilation, groups"},
      {&SpecText::block, R"({"candidates": [{"op": "conv", "kernel": 4}]})",
       "7:42: supernet.blocks[0].candidates[0].kernel: must be odd, found 4"},
      {&SpecText::block, R"({"candidates": [{"op": "conv", "kernel": 0}]})",
       "7:42: supernet.blocks[0].candidates[0].kernel: must be from 1 to 1023, found 0"},
      {&SpecText::block, R"({"candidates": [{"op": "conv", "groups": -99999999999999999999}]})",
       "7:42: supernet.blocks[0].candidates[0].groups: -99999999999999999999 does not fit into 64 "
       "bits"},
      {&SpecText::block, R"({"candidates": [{"op": "conv", "groups": 18446744073709551615}]})",
       "7:42: supernet.blocks[0].candidates[0].groups: must be from 1 to 16777216, found "
       "18446744073709551615"},
      {&SpecText::block, R"({"candidates": [{"op": "cnov"}]})",
       "7:24: supernet.blocks[0].candidates[0].op: unknown value \"cnov\"",
       "did you mean \"conv\"?"},
      {&SpecText::block, R"({"candidates": [{"kernel": 3}]})",
       "7:17: supernet.blocks[0].candidates[0].op: required, but missing", "allowed: conv,"},
      {&SpecText::block, R"({"candidates": [[]]})",
       "7:17: supernet.blocks[0].candidates[0]: expected an object, found a list"},
      {&SpecText::block, R"({"candidates": []})",
       "7:16: supernet.blocks[0].candidates: must hold from 1 to 65536 operators"},
      {&SpecText::block, R"({"candidates": {"op": "conv"}})",
       "7:16: supernet.blocks[0].candidates: expected a list, found an object"},
      {&SpecText::block, R"({"repeat": 2})",
       "7:1: supernet.blocks[0].candidates: required, but missing"},
      {&SpecText::block, R"({"repeat": 0, "candidates": [{"op": "skip"}]})",
       "7:12: supernet.blocks[0].repeat: must be from 1 to 1048576, found 0"},
      {&SpecText::block, R"({"stride": 3, "candidates": [{"op": "skip"}]})",
       "7:12: supernet.blocks[0].stride: must be 1 or 2, found 3"},
      {&SpecText::block, R"({"residual": 1, "candidates": [{"op": "skip"}]})",
       "7:14: supernet.blocks[0].residual: expected a boolean, found 1"},
      {&SpecText::block, R"({"channels": 1, "features": 1, "candidates": [{"op": "skip"}]})",
       "7:17: supernet.blocks[0].features: a block gives either images (channels) or vectors "
       "(features)"},
      {&SpecText::block, R"({"candidates": [{"op": "linear", "dropout": 1.0}]})",
       "7:45: supernet.blocks[0].candidates[0].dropout: must be at least 0 and below 1, found 1.0"},
      {&SpecText::block, R"({"candidates": [{"op": "ffn"}]})",
       "7:17: supernet.blocks[0].candidates[0].hidden: required, but missing"},
      {&SpecText::block, R"({"candidates": [{"op": "classifier"}]})",
       "7:17: supernet.blocks[0].candidates[0]: a classifier can only be the head"},
      {&SpecText::block, "", "6:11: supernet.blocks: must hold at least one block"},
      {&SpecText::stem, R"({"candidates": [{"op": "conv"}, {"op": "conv"}]})",
       "5:10: supernet.stem.candidates: it has one operator only", "write its \"op\""},
      {&SpecText::stem, R"({"op": "conv", "repeat": 2})",
       "5:24: supernet.stem.repeat: unknown field",
       "allowed: op, kernel, dilation, groups, channels, features, stride, trainable"},
      {&SpecText::stem, R"({"op": "classifier"})",
       "5:9: supernet.stem: a classifier can only be the head"},
      {&SpecText::stem, R"([])", "5:9: supernet.stem: expected an object, found a list"},
      {&SpecText::head, R"({"op": "linear"})",
       "8:9: supernet.head: must be a classifier, found \"linear\""},
      {&SpecText::head, R"({"op": "classifier", "features": 10})",
       "8:30: supernet.head.features: unknown field", "allowed: op, dropout, tied, trainable"},
  };
  for (const Case& c : cases) ExpectRefused(c);
}

TEST(SpecErrors, Training) {
  const Case cases[] = {
      {&SpecText::sizes, R"("subnets": 10)", "9:13: training.batch: required, but missing"},
      {&SpecText::sizes, R"("subnets": 0, "batch": 8)",
       "10:12: training.subnets: must be from 1 to 4294967295, found 0"},
      {&SpecText::sizes, R"("subnets": 1, "batch": 8, "microbatch": 8)",
       "10:27: training.microbatch: unknown field", "did you mean \"microbatches\"?"},
      {&SpecText::sizes, R"("subnets": 1, "batch": 9, "microbatches": 4)",
       "10:43: training.microbatches: the last of 4 micro-batches of 9 rows would be empty"},
      {&SpecText::sizes, R"("subnets": 1, "batch": 2, "microbatches": 3)",
       "10:43: training.microbatches: the last of 3 micro-batches of 2 rows would be empty"},
      {&SpecText::sizes, R"("subnets": 1, "batch": 8, "loss": "mse")",
       "10:35: training.loss: unknown value \"mse\"", "allowed: cross_entropy"},
      {&SpecText::optimizer, R"({"kind": "sdg"})",
       "11:23: training.optimizer.kind: unknown value \"sdg\"", "did you mean \"sgd\"?"},
      {&SpecText::optimizer, R"({"kind": "adam", "momentum": 0.9})",
       "11:31: training.optimizer.momentum: unknown field"},
      {&SpecText::optimizer, R"({"kind": "adam", "betas": [0.9]})",
       "11:40: training.optimizer.betas: must hold two numbers, found 1"},
      {&SpecText::optimizer, R"({"kind": "adam", "betas": [0.9, 1]})",
       "11:46: training.optimizer.betas[1]: must be at least 0 and below 1, found 1"},
      {&SpecText::optimizer, R"({"kind": "sgd", "nesterov": true})",
       "11:42: training.optimizer.nesterov: needs momentum"},
      {&SpecText::optimizer, R"({"kind": "sgd", "weight_decay": -1e-4})",
       "11:46: training.optimizer.weight_decay: must be at least 0, found -1e-4"},
      {&SpecText::lr, R"({"kind": "constant"})", "12:7: training.lr.base: required, but missing"},
      {&SpecText::lr, R"({"kind": "step", "base": 1})",
       "12:7: training.lr.every: required, but missing"},
      {&SpecText::lr, R"({"kind": "cosine", "base": 1, "gamma": 1})",
       "12:37: training.lr.gamma: unknown field"},
      {&SpecText::lr, R"(0.1)", "12:7: training.lr: expected an object, found 0.1"},
      {&SpecText::lr, R"(null)", "12:7: training.lr: expected an object, found null"},
  };
  for (const Case& c : cases) ExpectRefused(c);
}

TEST(SpecErrors, NotAnObject) {
  const auto spec = ParseSpec("[]", "test.json");
  ASSERT_FALSE(spec);
  EXPECT_EQ(spec.error().message, "test.json:1:1: expected an object, found a list");
}

}  // namespace
}  // namespace verbatim
