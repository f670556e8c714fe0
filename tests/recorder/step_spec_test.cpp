// Proves that a step run's spec and the text of its layers are read back as they were written, and
// that another spec is refused with its field.
#include "recorder/step_spec.h"

#include <gmock/gmock.h>

#include "recorder/step_layer.h"

namespace verbatim {
namespace {

using ::testing::HasSubstr;

TEST(StepSpec, IsReadBackAsItWasWritten) {
  StepSpec spec;
  EXPECT_EQ(StepSpecToJson(spec),
            R"({"steps":{"every":1,"gradients":false,"name":"","optimizer_state":true,"rank":0,)"
            R"("seed":null,"settings":{},"world_size":1}})");
  EXPECT_EQ(ParseStepSpec(StepSpecToJson(spec), "spec"), spec);
  spec = {"a \"run\"", 18446744073709551615u, 10, 3, 4, false, true, {{"lr", "0.1"}}};
  EXPECT_EQ(StepSpecToJson(spec),
            R"({"steps":{"every":10,"gradients":true,"name":"a \"run\"","optimizer_state":false,)"
            R"("rank":3,"seed":18446744073709551615,"settings":{"lr":0.1},"world_size":4}})");
  EXPECT_EQ(ParseStepSpec(StepSpecToJson(spec), "spec"), spec);
}

TEST(StepSpec, RefusesAnotherOneWithItsField) {
  const std::string sound = StepSpecToJson({});
  const struct {
    const char* from;
    const char* to;
    const char* problem;
  } cases[] = {
      {"steps", "stepz", "unknown field"},
      {"\"every\":1", "\"every\":0", "steps.every: must be"},
      {"\"every\":1,", "", "steps.every: required"},
      {"\"gradients\":false", "\"gradients\":0", "steps.gradients: expected a boolean"},
      {"\"name\":\"\"", "\"name\":1", "steps.name: expected a string"},
      {"\"rank\":0", "\"rank\":1", "steps.rank: must be"},
      {"\"seed\":null", "\"seed\":-1", "steps.seed: must be at least 0"},
      {"\"seed\":null,", "", "steps.seed: required"},
      {"\"settings\":{}", "\"settings\":[]", "steps.settings: expected an object"},
      {"\"settings\":{}", "\"settings\":{\"a\":[]}", "steps.settings.a: expected"},
      {"\"settings\":{},", "", "steps.settings: required"},
      {"\"world_size\":1", "\"world_size\":1048577", "steps.world_size: must be"},
      {"\"world_size\":1", "\"world_size\":1,\"more\":2", "steps.more: unknown field"},
  };
  for (const auto& [from, to, problem] : cases) {
    std::string text = sound;
    text.replace(text.find(from), std::string_view(from).size(), to);
    const auto spec = ParseStepSpec(text, "spec");
    ASSERT_FALSE(spec) << text;
    EXPECT_EQ(spec.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(spec.error().message, HasSubstr(problem)) << text;
  }
}

TEST(StepLayer, TextIsReadBack) {
  const struct {
    StepLayer layer;
    const char* op;
    const char* tensor;
    const char* placement;
    const char* also;
  } cases[] = {
      {{StepLayerKind::kParameter, "w", DType::kFloat32, {128, 64}, "", {}, {}},
       "parameter float32[128,64]",
       "float32[128,64]",
       "",
       ""},
      {{StepLayerKind::kBuffer, "n", DType::kInt64, {}, "", {}, {}},
       "buffer int64[]",
       "int64[]",
       "",
       ""},
      {{StepLayerKind::kCaptured, "a", DType::kFloat32, {2}, "", {}, {}}, "captured", "", "", ""},
      {{StepLayerKind::kParameter, "w", DType::kFloat8E4M3FN, {0}, "shard 0 of 2", {"a", "b"}, {}},
       "parameter float8_e4m3fn[0] (shard 0 of 2) also a, b",
       "float8_e4m3fn[0]",
       "shard 0 of 2",
       "a, b"},
      {{StepLayerKind::kParameter, "w", DType::kFloat32, {5, 6}, "Shard(dim=0) of [9,6]", {}, {}},
       "parameter float32[5,6] (Shard(dim=0) of [9,6])",
       "float32[5,6]",
       "Shard(dim=0) of [9,6]",
       ""},
      {{StepLayerKind::kParameter, "w", DType::kFloat32, {3}, "(Shard(dim=0))", {"a(1)"}, {}},
       "parameter float32[3] ((Shard(dim=0))) also a(1)",
       "float32[3]",
       "(Shard(dim=0))",
       "a(1)"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(DescribeStepLayer(c.layer), c.op);
    const auto text = ParseStepLayer(c.op);
    ASSERT_TRUE(text) << c.op;
    EXPECT_EQ(text->kind, c.layer.kind);
    EXPECT_EQ(text->tensor, c.tensor);
    EXPECT_EQ(text->placement, c.placement);
    EXPECT_EQ(text->also, c.also);
  }
}

TEST(StepLayer, OtherTextIsRefused) {
  for (const char* op : {"", "parameter", "parameter float32", "parameter float32]", "parameters",
                         "conv kernel 3", "captured float32[1]", "buffer int64[] (open",
                         "buffer int64[] (a) b", "buffer int64[] more"}) {
    EXPECT_FALSE(ParseStepLayer(op)) << op;
  }
}

}  // namespace
}  // namespace verbatim
