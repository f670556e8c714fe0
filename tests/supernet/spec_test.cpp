// Proves what a spec's text means: defaults, every field, and that the written form reads back.
#include "supernet/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/supernet/spec_text.h"

namespace verbatim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Spec, FillsInDefaults) {
  SpecText text;
  text.top = R"("record": {})";
  const Spec spec = ParseOrDie(text.Text());
  EXPECT_EQ(spec.name, "small");
  EXPECT_EQ(spec.seed, 0u);
  EXPECT_EQ(spec.numerics, Numerics::kNative);
  EXPECT_EQ(spec.data.holdout, 0.2);
  EXPECT_THAT(spec.data.mean, ElementsAre(0.0));
  EXPECT_THAT(spec.data.std, ElementsAre(255.0));
  EXPECT_EQ(spec.sampler.kind, SamplerKind::kUniform);
  EXPECT_EQ(spec.training.microbatches, 1);
  EXPECT_EQ(spec.training.optimizer.momentum, 0.0);
  EXPECT_EQ(spec.training.lr.warmup, 0);
  EXPECT_EQ(spec.evaluation.subnets, 0);
  EXPECT_EQ(spec.evaluation.calibration_batches, 4);
  EXPECT_EQ(spec.record_level, RecordLevel::kWeights);
  const BlockSpec block{
      .candidates = {{.kind = OperatorKind::kConv}, {.kind = OperatorKind::kSkip}}};
  EXPECT_THAT(spec.supernet.blocks, ElementsAre(block));
  EXPECT_EQ(spec.supernet.stem.channels, 8);
  EXPECT_THAT(spec.supernet.head.candidates,
              ElementsAre(OperatorSpec{.kind = OperatorKind::kClassifier}));
}

TEST(Spec, ReadsEveryField) {
  SpecText text;
  text.top = R"("seed": 18446744073709551615, "numerics": "x86-64-v3", "record": {"level": "full"},
    "evaluation": {"subnets": 3, "calibration_batches": 0},
    "sampler": {"kind": "list", "file": "a.json"})";
  text.data = R"({"format": "cifar100", "folder": "d", "holdout": 0, "mean": [1, 2.5, -3],
    "std": 7})";
  text.stem = R"({"op": "mbconv", "kernel": 5, "expansion": 1, "channels": 4, "stride": 2,
    "trainable": false, "delay": 1})";
  text.block = R"({"repeat": 2, "features": 9, "residual": true, "trainable": false, "delay": 65536,
    "candidates": [{"op": "linear", "activation": "none", "dropout": 0.5},
                   {"op": "ffn", "hidden": 12, "dropout": 0.25}]},
   {"channels": 6, "stride": 2,
    "candidates": [{"op": "conv", "kernel": 1, "dilation": 2, "groups": 3}]})";
  text.head = R"({"op": "classifier", "dropout": 0.125, "trainable": false, "delay": 4})";
  text.sizes = R"("subnets": 5, "batch": 10, "microbatches": 4, "loss": "cross_entropy")";
  text.optimizer = R"({"kind": "adamw", "betas": [0.5, 0.75], "epsilon": 1, "weight_decay": 2})";
  text.lr = R"({"kind": "step", "base": 1, "every": 2, "gamma": 0.5, "warmup": 3})";
  const Spec spec = ParseOrDie(text.Text());
  EXPECT_EQ(spec.seed, 18446744073709551615u);
  EXPECT_EQ(spec.numerics, Numerics::kX8664V3);
  EXPECT_EQ(spec.data.format, DataFormat::kCifar100);
  EXPECT_EQ(spec.data.holdout, 0.0);
  EXPECT_THAT(spec.data.mean, ElementsAre(1.0, 2.5, -3.0));
  EXPECT_EQ(
      spec.supernet.stem,
      (BlockSpec{.channels = 4,
                 .stride = 2,
                 .trainable = false,
                 .delay = 1,
                 .candidates = {{.kind = OperatorKind::kMbConv, .kernel = 5, .expansion = 1}}}));
  const BlockSpec vectors{
      .repeat = 2,
      .features = 9,
      .residual = true,
      .trainable = false,
      .delay = 65536,
      .candidates = {
          {.kind = OperatorKind::kLinear, .dropout = 0.5, .activation = Activation::kNone},
          {.kind = OperatorKind::kFfn, .hidden = 12, .dropout = 0.25}}};
  const BlockSpec images{
      .channels = 6,
      .stride = 2,
      .candidates = {{.kind = OperatorKind::kConv, .kernel = 1, .dilation = 2, .groups = 3}}};
  EXPECT_THAT(spec.supernet.blocks, ElementsAre(vectors, images));
  EXPECT_EQ(spec.supernet.head.candidates[0].dropout, 0.125);
  EXPECT_FALSE(spec.supernet.head.trainable);
  EXPECT_EQ(spec.supernet.head.delay, 4);
  EXPECT_EQ(spec.sampler.file, "a.json");
  EXPECT_EQ(spec.training.microbatches, 4);
  EXPECT_EQ(spec.training.optimizer.kind, OptimizerKind::kAdamW);
  EXPECT_EQ(spec.training.optimizer.beta2, 0.75);
  EXPECT_EQ(spec.training.lr.every, 2);
  EXPECT_EQ(spec.evaluation.calibration_batches, 0);
  EXPECT_EQ(spec.record_level, RecordLevel::kFull);

  const std::string json = SpecToJson(spec);
  EXPECT_EQ(SpecToJson(ParseOrDie(json)), json);
  EXPECT_EQ(ParseOrDie(json).supernet.blocks, spec.supernet.blocks);
}

TEST(Spec, WrittenFormIsLiteral) {
  SpecText text;
  text.optimizer = R"({"weight_decay": 1e-4, "kind": "sgd", "nesterov": true, "momentum": 0.90})";
  EXPECT_EQ(
      SpecToJson(ParseOrDie(text.Text())),
      R"({"data":{"folder":"digits","format":"idx","holdout":0.2,"mean":0,"std":255},)"
      R"("evaluation":{"calibration_batches":4,"subnets":0},"name":"small","numerics":"native",)"
      R"("record":{"level":"weights"},"sampler":{"kind":"uniform"},"seed":1,)"
      R"("supernet":{"blocks":[{"candidates":[{"dilation":1,"groups":1,"kernel":3,"op":"conv"},)"
      R"({"op":"skip"}],"delay":0,"part":"decoder","repeat":1,"residual":false,"stride":1,)"
      R"("trainable":true}],)"
      R"("head":{"delay":0,"dropout":0,"op":"classifier","tied":false,"trainable":true},)"
      R"("stem":{"channels":8,"delay":0,"dilation":1,"groups":1,"kernel":3,"op":"conv","stride":1,)"
      R"("trainable":true}},"training":{"batch":8,"label_smoothing":0,)"
      R"("loss":"cross_entropy",)"
      R"("lr":{"base":0.1,"kind":"constant","warmup":0},"microbatches":1,)"
      R"("optimizer":{"kind":"sgd","momentum":0.9,"nesterov":true,"weight_decay":1e-04},)"
      R"("subnets":10}})");
}

TEST(Spec, EqualSpecsHaveEqualText) {
  SpecText text;
  text.data = R"({"folder": "digits", "std": [255.0], "mean": -0.0, "format": "idx"})";
  text.lr = R"({"base": 1e-1, "warmup": 0, "kind": "constant"})";
  EXPECT_EQ(SpecToJson(ParseOrDie(text.Text())), SpecToJson(ParseOrDie(SpecText().Text())));
}

TEST(Spec, EveryOptimizerAndScheduleReadsBack) {
  for (const char* optimizer :
       {R"({"kind": "sgd"})", R"({"kind": "adam"})", R"({"kind": "adamw"})"}) {
    for (const char* lr :
         {R"({"kind": "constant", "base": 0})", R"({"kind": "step", "base": 0.3, "every": 9})",
          R"({"kind": "cosine", "base": 1e-300, "final": 0.1})"}) {
      SpecText text;
      text.optimizer = optimizer;
      text.lr = lr;
      const std::string json = SpecToJson(ParseOrDie(text.Text()));
      EXPECT_EQ(SpecToJson(ParseOrDie(json)), json);
    }
  }
}

TEST(Spec, EverySamplerReadsBack) {
  const struct {
    const char* written;
    const char* filled_in;
  } cases[] = {
      {R"({"kind": "fair"})", R"({"kind":"fair"})"},
      {R"({"kind": "fair", "reuse_distance": 0})", R"({"kind":"fair","reuse_distance":0})"},
      {R"({"kind": "fair", "reuse_distance": 2})", R"({"kind":"fair","reuse_distance":2})"},
      {R"({"kind": "reorder", "of": {"kind": "uniform"}})",
       R"({"kind":"reorder","neighbours":16,"of":{"kind":"uniform"},"window":128})"},
      {R"({"kind": "reorder", "of": {"kind": "list", "file": "a"}, "window": 9, "neighbours": 3})",
       R"({"kind":"reorder","neighbours":3,"of":{"file":"a","kind":"list"},"window":9})"},
      {R"({"kind": "reorder", "of": {"kind": "fair", "reuse_distance": 1}, "window": 65536})",
       R"({"kind":"reorder","neighbours":16,"of":{"kind":"fair","reuse_distance":1},)"
       R"("window":65536})"}};
  for (const auto& c : cases) {
    SpecText text;
    text.top = std::string(R"("sampler": )") + c.written;
    const std::string json = SpecToJson(ParseOrDie(text.Text()));
    EXPECT_THAT(json, HasSubstr(std::string(R"("sampler":)") + c.filled_in + ","));
    EXPECT_EQ(SpecToJson(ParseOrDie(json)), json);
  }
}

TEST(Spec, ReadsTheExample) {
  const auto spec = ReadSpec(VERBATIM_EXAMPLES "/digits.json");
  ASSERT_TRUE(spec) << spec.error().message;
  const SearchSpace space = BuildOrDie(*spec, {1, 8, 8}, 10);
  EXPECT_GE(space.blocks(), 12);
  for (int position = 1; position <= space.blocks(); ++position) {
    EXPECT_GE(space.candidates(position), 4);
  }
}

TEST(Spec, SaysWhichFileCannotBeRead) {
  for (const std::string path : {VERBATIM_EXAMPLES "/missing.json", VERBATIM_EXAMPLES}) {
    const auto spec = ReadSpec(path);
    ASSERT_FALSE(spec);
    EXPECT_EQ(spec.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(spec.error().message, HasSubstr(path));
  }
}

TEST(RecordLevel, ReadsItsNames) {
  for (const auto level : {RecordLevel::kLosses, RecordLevel::kWeights, RecordLevel::kFull}) {
    EXPECT_EQ(RecordLevelFromString(ToString(level)).value(), level);
  }
  const auto unknown = RecordLevelFromString("weight");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().hint, "did you mean \"weights\"?");
}

}  // namespace
}  // namespace verbatim
