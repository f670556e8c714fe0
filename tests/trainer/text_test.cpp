// Texts: the right bytes in batches, places that see what they may, and every layout leaving the
// bits of the sequential reference, tied heads included.
#include <ATen/ops/equal.h>
#include <ATen/ops/linspace.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/trainer/small_run.h"
#include "trainer/evaluation.h"
#include "trainer/operators.h"

namespace verbatim {
namespace {

TEST(TextBatchTest, HoldsTheBytesAndThoseAfterThem) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "t", std::ios::binary) << "abcdefghijk\xff\x01";
  Spec spec = SmallTextSpec();
  spec.training.batch = 1;
  spec.data = {.format = DataFormat::kText, .holdout = 0.0, .file = "t", .length = 4, .source = 1};
  spec.evaluation.subnets = 0;
  const auto dataset = Dataset::Load(spec, folder.path());
  ASSERT_TRUE(dataset.has_value()) << dataset.error().message;
  const std::vector<std::uint32_t> samples = {2, 0};
  const Batch batch = (*dataset)->TrainingBatch(samples, at::kCPU);
  const auto bytes = [](const at::Tensor& tensor, std::int64_t row) {
    std::string text;
    for (std::int64_t i = 0; i < tensor.size(1); ++i) {
      text.push_back(static_cast<char>(tensor[row][i].item<std::int64_t>()));
    }
    return text;
  };
  EXPECT_EQ(batch.inputs.scalar_type(), at::kLong);
  EXPECT_EQ(bytes(batch.inputs, 0), "ijk\xff");
  EXPECT_EQ(bytes(batch.labels, 0), "k\xff\x01");
  EXPECT_EQ(bytes(batch.inputs, 1), "abcd");
  EXPECT_EQ(bytes(batch.labels, 1), "cde");
  EXPECT_EQ(batch.inputs.max().item<std::int64_t>(), 255);
  EXPECT_EQ((*dataset)->targets(), 3);
}

/// Every candidate, and what a change of one place of its input changes in its output.
TEST(SequenceOperatorTest, PlacesSeeWhatTheyMay) {
  const Experiment experiment = MakeExperiment(SmallTextSpec());
  const at::Tensor input = at::linspace(-1, 1, 16 * 8).reshape({1, 16, 8}).sin();
  for (const Layer& layer : experiment.space.layers()) {
    if (layer.position == 0 || layer.position == experiment.space.positions() - 1) continue;
    const OperatorContext context{.parameters = experiment.layers[layer.id].parameters};
    const at::Tensor before = ApplyLayer(layer, input, context);
    ASSERT_EQ(before.sizes(), input.sizes()) << layer.name;
    const bool is_encoder = layer.part == SequencePart::kEncoder;
    const std::int64_t first = is_encoder ? 0 : layer.source;
    const std::int64_t last = is_encoder ? layer.source : 16;
    for (std::int64_t place = 0; place < 16; ++place) {
      at::Tensor other = input.clone();
      other[0][place][0].add_(1.0);  // of all channels, layer norm would take it away
      const at::Tensor after = ApplyLayer(layer, other, context);
      for (std::int64_t at = 0; at < 16; ++at) {
        const bool changed = !at::equal(before[0][at], after[0][at]);
        const std::string where = layer.name + " " + Describe(layer.op);
        const bool is_own = first <= at && at < last;
        if (!is_own) {
          EXPECT_EQ(changed, at == place) << where << " hands on " << at;
        } else if (place >= first && place < last) {
          const bool looks_ahead = changed && !is_encoder && at < place;
          EXPECT_TRUE(changed || at != place) << where;
          EXPECT_FALSE(looks_ahead) << where;
        } else {
          const bool looks = layer.op.kind == OperatorKind::kCrossAttention;
          EXPECT_EQ(changed, looks) << where << ": place " << place << " from " << at;
        }
      }
    }
  }
}

TEST(SequenceOperatorTest, ResidualsAreAddedToTheirPartAlone) {
  const Experiment experiment = MakeExperiment(SmallTextSpec());
  const at::Tensor input = at::linspace(-1, 1, 2 * 16 * 8).reshape({2, 16, 8});
  for (const Layer& layer : experiment.space.layers()) {
    if (!layer.residual) continue;
    const OperatorContext context{.parameters = experiment.layers[layer.id].parameters};
    Layer plain = layer;
    plain.residual = false;
    at::Tensor expected = ApplyLayer(plain, input, context).clone();
    const bool is_encoder = layer.part == SequencePart::kEncoder;
    const std::int64_t first = is_encoder ? 0 : layer.source;
    const std::int64_t places = is_encoder ? layer.source : 16 - layer.source;
    expected.narrow(1, first, places).add_(input.narrow(1, first, places));
    EXPECT_TRUE(at::equal(ApplyLayer(layer, input, context), expected)) << layer.name;
  }
}

/// `change` makes the spec that all of them train.
void ExpectLayoutsEqual(void (*change)(Spec&), const char* what) {
  Spec spec = SmallTextSpec();
  change(spec);
  const std::string reference = RecordedContent(spec, SequentialOptions());
  for (const std::int64_t stages : {1, 2, 4, 7}) {
    TrainingOptions options;
    options.stages = stages;
    options.in_flight = 8;
    EXPECT_EQ(RecordedContent(spec, options), reference) << what << ", " << stages << " stages";
  }
}

TEST(TextEqualityTest, EveryStageCountLeavesTheSequentialRecord) {
  ExpectLayoutsEqual([](Spec&) {}, "tied");
  ExpectLayoutsEqual([](Spec& spec) { spec.supernet.head.candidates[0].tied = false; }, "not tied");
  ExpectLayoutsEqual([](Spec& spec) { spec.supernet.stem.trainable = false; }, "frozen stem");
  ExpectLayoutsEqual([](Spec& spec) { spec.supernet.head.trainable = false; }, "frozen head");
}

TEST(TextEqualityTest, DelaysOfStemAndHeadChangeTheRunButNotByLayout) {
  const auto delay = [](Spec& spec) {
    spec.supernet.stem.delay = 3;
    spec.supernet.head.delay = 2;
  };
  ExpectLayoutsEqual(delay, "delays");
  Spec delayed = SmallTextSpec();
  delay(delayed);
  EXPECT_NE(RecordedContent(delayed, SequentialOptions()),
            RecordedContent(SmallTextSpec(), SequentialOptions()));
}

/// The matrix of a tied head stays the stem's: what the head's use of it adds is in the stem's
/// update.
TEST(TiedHeadTest, TrainsTheEmbeddingOfBytesThatNoInputHolds) {
  Spec spec = SmallTextSpec();
  const auto moved = [](const Spec& trained) {
    Experiment experiment = MakeExperiment(trained);
    const at::Tensor before = experiment.layers.front().parameters.front()[0].clone();
    TrainedRows(experiment, SequentialOptions());  // the corpus has no byte 0
    return !at::equal(experiment.layers.front().parameters.front()[0], before);
  };
  spec.training.optimizer = {.kind = OptimizerKind::kSgd};
  EXPECT_TRUE(moved(spec));
  spec.supernet.head.candidates[0].tied = false;
  EXPECT_FALSE(moved(spec));
}

TEST(TextEvaluationTest, CountsEveryLabel) {
  Experiment experiment = MakeExperiment(SmallTextSpec());
  const auto rows = EvaluateSubnets(experiment, {});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].total, experiment.dataset->held_out_size() * 10);
  EXPECT_LT(rows[0].correct, rows[0].total / 4);
}

TEST(TextEvaluationTest, ASubnetThatIsTrainedAloneLearnsTheText) {
  Spec spec = SmallTextSpec();
  spec.training.subnets = 150;
  spec.training.batch = 48;
  spec.supernet.stem.features = 32;
  spec.supernet.stem.candidates[0].dropout = 0.0;
  spec.supernet.blocks[1].candidates = {spec.supernet.blocks[1].candidates[0]};
  Experiment experiment = MakeExperiment(spec);
  TrainedRows(experiment, SequentialOptions());
  const EvaluationRow row = EvaluateSubnets(experiment, {})[0];
  EXPECT_GT(row.correct, row.total * 2 / 5);
}

}  // namespace
}  // namespace verbatim
