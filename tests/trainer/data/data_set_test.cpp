// Proves that a text's samples are split and checked like images.
#include "trainer/data/data_set.h"

#include "tests/trainer/data/data_testing.h"
#include "trainer/data/split.h"

namespace verbatim {
namespace {

class DataSetTest : public DataTest {
 protected:
  /// 24 samples of 4 bytes.
  Spec TextSpec() {
    Write("t", std::string(100, 'x'));
    Spec spec;
    spec.seed = 5;
    spec.data = {
        .format = DataFormat::kText, .holdout = 0.25, .file = "t", .length = 4, .source = 1};
    spec.training.batch = 18;
    return spec;
  }
};

TEST_F(DataSetTest, TextsHaveTheirShapeFromTheSpec) {
  const Spec spec = TextSpec();
  const auto data = LoadDataSet(spec, folder_);
  ASSERT_TRUE(data.has_value()) << data.error().message;
  EXPECT_EQ(data->shape(), ShapeOfSpec(spec.data));
  EXPECT_EQ(data->classes(), 256);
  EXPECT_EQ(data->digest(), DigestText(*data->text()));
  EXPECT_EQ(data->images(), nullptr);
}

TEST_F(DataSetTest, TextsAreSplitByKey) {
  const auto data = LoadDataSet(TextSpec(), folder_);
  ASSERT_TRUE(data.has_value()) << data.error().message;
  const Split split = SplitHeldOut(24, 0.25, 5);
  EXPECT_EQ(data->training, split.train);
  EXPECT_EQ(data->held_out, split.held_out);
}

TEST_F(DataSetTest, BatchesHaveToFitTexts) {
  Spec spec = TextSpec();
  spec.training.batch = 19;
  ExpectBadInput(LoadDataSet(spec, folder_), "19 samples a batch");
  spec = TextSpec();
  spec.data.holdout = 0.0;
  spec.evaluation.subnets = 1;
  ExpectBadInput(LoadDataSet(spec, folder_), "no held-out samples");
}

}  // namespace
}  // namespace verbatim
