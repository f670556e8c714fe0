#include "verify/layer_matching.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recorder/step_layer.h"
#include "tests/verify/step_sample.h"

namespace verbatim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

std::vector<LayerRow> Rows(const std::vector<StepLayer>& layers) {
  return StepLayerRows(layers);
}

TEST(LayerMatching, MeetsByNameInAnyOrder) {
  std::vector<StepLayer> b = SampleLayers();
  std::swap(b[0], b[3]);
  const auto matching = MatchLayers(Rows(SampleLayers()), Rows(b), {});
  ASSERT_TRUE(matching.has_value());
  EXPECT_THAT(matching->a, SizeIs(5));
  EXPECT_THAT(matching->common_of_a, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(matching->common_of_b, ElementsAre(3, 1, 2, 0, 4));
  EXPECT_EQ(matching->b[0].initial_digest, DigestOf("initial fc1.weight"));
  EXPECT_TRUE(matching->differences.empty());
}

TEST(LayerMatching, TellsWhatOneSideAloneHas) {
  std::vector<StepLayer> a = SampleLayers();
  std::vector<StepLayer> b = SampleLayers();
  a.erase(a.begin() + 3);  // fc2.bias is only in B
  b.erase(b.begin());      // fc1.weight is only in A
  const auto matching = MatchLayers(Rows(a), Rows(b), {});
  ASSERT_TRUE(matching.has_value());
  EXPECT_THAT(matching->id_in_a, ElementsAre(1, 2, 3));
  EXPECT_THAT(matching->common_of_a, ElementsAre(-1, 0, 1, 2));
  EXPECT_THAT(matching->common_of_b, ElementsAre(0, 1, -1, 2));
  ASSERT_THAT(matching->differences, SizeIs(2));
  EXPECT_EQ(matching->differences[0].kind, DifferenceClass::kSpec);
  EXPECT_EQ(matching->differences[0].layer_name, "fc1.weight");
  EXPECT_EQ(matching->differences[0].cause, "only A has this layer");
  EXPECT_EQ(matching->differences[1].layer_name, "fc2.bias");
  EXPECT_EQ(matching->differences[1].cause, "only B has this layer");
}

TEST(LayerMatching, TellsAnotherShapeTypeOrKind) {
  const auto differs = [](const auto& change) {
    std::vector<StepLayer> b = SampleLayers();
    change(b[0]);
    const auto matching = MatchLayers(Rows(SampleLayers()), Rows(b), {});
    return matching && matching->differences.size() == 1 &&
           matching->differences[0].kind == DifferenceClass::kSpec && matching->a.size() == 4;
  };
  EXPECT_TRUE(differs([](StepLayer& layer) { layer.shape = {3, 1}; }));
  EXPECT_TRUE(differs([](StepLayer& layer) { layer.dtype = DType::kFloat64; }));
  EXPECT_TRUE(differs([](StepLayer& layer) { layer.kind = StepLayerKind::kBuffer; }));
  EXPECT_TRUE(differs([](StepLayer& layer) { layer.also = {"head.weight"}; }));
}

TEST(LayerMatching, LeavesOutWhatOneRecorderAloneCaptured) {
  std::vector<StepLayer> b = SampleLayers();
  b.pop_back();
  const auto matching = MatchLayers(Rows(SampleLayers()), Rows(b), {});
  ASSERT_TRUE(matching.has_value());
  EXPECT_TRUE(matching->differences.empty());
  EXPECT_EQ(matching->common_of_a[4], -1);
}

TEST(LayerMatching, FollowsRenamings) {
  std::vector<StepLayer> a = SampleLayers();
  std::vector<StepLayer> b = SampleLayers();
  a[0].also = {"tied.weight"};
  b[0].name = "layers.0.weight";
  b[0].also = {"layers.9.weight"};
  b[2].name = "fc2.bias";  // B calls its weight what A calls its bias, and the other way round
  b[3].name = "fc2.weight";
  const LayerNames renames{{"fc1.weight", "layers.0.weight"},
                           {"tied.weight", "layers.9.weight"},
                           {"fc2.weight", "fc2.bias"},
                           {"fc2.bias", "fc2.weight"}};
  const auto matching = MatchLayers(Rows(a), Rows(b), renames);
  ASSERT_TRUE(matching.has_value());
  EXPECT_TRUE(matching->differences.empty());
  EXPECT_THAT(matching->common_of_b, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(matching->b[0].name, "fc1.weight");
}

TEST(LayerMatching, ARenamingTakesANameFromItsOwnLayer) {
  std::vector<StepLayer> a = SampleLayers();
  a[2].shape = a[3].shape;
  std::vector<StepLayer> b = a;
  b.erase(b.begin() + 3);
  const auto matching = MatchLayers(Rows(a), Rows(b), {{"fc2.bias", "fc2.weight"}});
  ASSERT_TRUE(matching.has_value());
  ASSERT_THAT(matching->differences, SizeIs(1));
  EXPECT_EQ(matching->differences[0].layer_name, "fc2.weight");
  EXPECT_EQ(matching->common_of_b[2], matching->common_of_a[3]);
}

TEST(LayerMatching, RefusesRenamingsThatDoNotFit) {
  const auto error = [](const LayerNames& renames) {
    const auto matching = MatchLayers(Rows(SampleLayers()), Rows(SampleLayers()), renames);
    return matching ? Error{} : matching.error();
  };
  EXPECT_EQ(error({{"fc1.weigth", "fc1.weight"}}).kind, ErrorKind::kBadInput);
  EXPECT_EQ(error({{"fc1.weigth", "fc1.weight"}}).message, "A has no layer 'fc1.weigth'");
  EXPECT_THAT(error({{"fc1.weigth", "fc1.weight"}}).hint, HasSubstr("fc1.weight"));
  EXPECT_EQ(error({{"fc1.weight", "x"}}).message, "B has no layer 'x'");
  EXPECT_EQ(error({{"fc1.weight", "bn.mean"}, {"bn.mean", "bn.mean"}}).message,
            "B's layer 'bn.mean' is named twice");
}

}  // namespace
}  // namespace verbatim
