// Batches: the right rows, normalised as documented; and what is refused.
#include "trainer/dataset.h"

#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <set>

#include "tests/trainer/small_run.h"

namespace verbatim {
namespace {

Result<std::unique_ptr<Dataset>> Load(const Spec& spec) {
  return Dataset::Load(spec, DataFolderOf(spec, VERBATIM_EXAMPLES));
}

TEST(DatasetTest, SplitsAndShapes) {
  const auto dataset = Load(SmallSpec());
  ASSERT_TRUE(dataset.has_value());
  EXPECT_EQ((*dataset)->shape(), (ActivationShape{1, 8, 8}));
  EXPECT_EQ((*dataset)->classes(), 10);
  EXPECT_EQ((*dataset)->training_pool().size(), 1438u);
  EXPECT_EQ((*dataset)->held_out_size(), 359);
}

TEST(DatasetTest, BatchesArePureFunctionsOfSeqAndAvoidTheHeldOut) {
  const auto dataset = Load(SmallSpec());
  ASSERT_TRUE(dataset.has_value());
  const std::set<std::uint32_t> pool((*dataset)->training_pool().begin(),
                                     (*dataset)->training_pool().end());
  const auto first = (*dataset)->SamplesOf(7);
  (*dataset)->SamplesOf(8);
  EXPECT_EQ((*dataset)->SamplesOf(7), first);
  EXPECT_NE((*dataset)->SamplesOf(8), first);
  EXPECT_EQ(std::set<std::uint32_t>(first.begin(), first.end()).size(), first.size());
  for (const std::uint32_t sample : first) EXPECT_TRUE(pool.contains(sample));
}

TEST(DatasetTest, InputsAreBytesLessMeanOverStd) {
  Spec spec = SmallSpec();
  const auto scaled = Load(spec);
  spec.data.mean = {0.0};
  spec.data.std = {1.0};
  const auto raw = Load(spec);
  ASSERT_TRUE(scaled.has_value() && raw.has_value());
  const std::vector<std::uint32_t> samples = {3, 1, 4};
  const Batch expected = (*raw)->TrainingBatch(samples, at::kCPU);
  const Batch batch = (*scaled)->TrainingBatch(samples, at::kCPU);
  EXPECT_TRUE(at::equal(batch.inputs, expected.inputs.sub(4.9f).div(6.0f)));
  EXPECT_TRUE(at::equal(batch.labels, expected.labels));
  EXPECT_LE(expected.inputs.max().item<float>(), 16.0f);
  EXPECT_NE(BatchDigest(batch), BatchDigest(expected));
}

TEST(DatasetTest, RefusesWhatDoesNotFit) {
  struct Case {
    const char* part;
    void (*change)(Spec&);
  };
  const Case cases[] = {
      {"training.batch", [](Spec& spec) { spec.training.batch = 1439; }},
      {"data.mean",
       [](Spec& spec) {
         spec.data.mean = {1, 2, 3};
       }},
      {"data.std",
       [](Spec& spec) {
         spec.data.std = {1, 2};
       }},
      {"evaluation.subnets", [](Spec& spec) { spec.data.holdout = 0; }},
      {"nowhere", [](Spec& spec) { spec.data.folder = "nowhere"; }},
  };
  for (const Case& c : cases) {
    Spec spec = SmallSpec();
    c.change(spec);
    const auto dataset = Load(spec);
    ASSERT_FALSE(dataset.has_value()) << c.part;
    EXPECT_EQ(dataset.error().kind, ErrorKind::kBadInput) << c.part;
    EXPECT_NE(dataset.error().message.find(c.part), std::string::npos) << dataset.error().message;
  }
}

}  // namespace
}  // namespace verbatim
