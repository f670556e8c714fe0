// What a subnet's part on a stage is counted to cost where some of it is computed again.
#include "schedule/simulate/flight.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/schedule/test_space.h"

namespace verbatim {
namespace {

/// Stem, four blocks of a linear layer or a skip, head; layers 1, 3, 5, 7 are linear, 2, 4, 6, 8
/// skips.
class LoadMeterTest : public testing::Test {
 protected:
  LoadMeterTest() {
    for (const Layer& layer : space_.layers()) {
      const bool is_skip = layer.op.kind == OperatorKind::kSkip;
      costs_.layers.push_back({.forward = is_skip ? 0.0 : 1.0,
                               .backward = is_skip ? 0.0 : 2.0,
                               .update = 0.5,
                               .activation_bytes = is_skip ? 0 : 100,
                               .output_bytes = 10});
    }
  }

  MicrobatchLoad Measure(const std::string& ranges, const std::vector<std::int32_t>& layers,
                         int begin, int end) const {
    const RecomputePlan plan = RecomputePlan::Make(ranges, space_).value();
    const VirtualTime time(/*subnet_max=*/100.0);
    const StageLoad load = LoadMeter(costs_, plan, time, 0.5).Measure(layers, begin, end);
    EXPECT_EQ(load.last.activation_bytes, load.whole.activation_bytes / 2);
    EXPECT_EQ(load.last.activation_bytes_max, load.whole.activation_bytes_max / 2);
    EXPECT_EQ(load.last.recompute, load.whole.recompute / 2);
    EXPECT_EQ(load.last.backward, load.whole.backward / 2);
    EXPECT_EQ(time.Units(load.whole.recompute),
              time.Units(load.whole.backward) - 2.0 * time.Units(load.whole.forward));
    return load.whole;
  }

  const SearchSpace space_ = MakeTestSpace(/*blocks=*/4, /*candidates=*/1);
  CostTable costs_;
};

TEST_F(LoadMeterTest, RangesKeepTheirInputs) {
  const std::vector<std::int32_t> layers{0, 1, 3, 5, 7, 9};
  struct Case {
    const char* ranges;
    int begin;
    int end;
    std::int64_t kept;
    std::int64_t most;
    std::int64_t whole;
  };
  const Case cases[] = {{"none", 0, 6, 600, 600, 600},    {"1-4", 0, 6, 210, 500, 600},
                        {"1-4", 0, 3, 110, 300, 300},     {"1-4", 3, 6, 110, 200, 300},
                        {"1-2,3-4", 0, 6, 220, 310, 600}, {"all", 0, 6, 240, 240, 600},
                        {"all", 1, 5, 40, 130, 400},      {"2", 0, 6, 510, 510, 600}};
  for (const Case& c : cases) {
    const MicrobatchLoad load = Measure(c.ranges, layers, c.begin, c.end);
    EXPECT_EQ(load.activation_bytes, c.kept) << c.ranges << " from " << c.begin;
    EXPECT_EQ(load.activation_bytes_max, c.most) << c.ranges << " from " << c.begin;
    EXPECT_EQ(load.whole_bytes, c.whole) << c.ranges << " from " << c.begin;
  }
}

TEST_F(LoadMeterTest, SkipsKeepNothing) {
  const std::vector<std::int32_t> layers{0, 2, 4, 5, 8, 9};
  EXPECT_EQ(Measure("all", layers, 0, 6).activation_bytes, 100 + 0 + 0 + 10 + 0 + 100);
  EXPECT_EQ(Measure("1-3", layers, 0, 6).activation_bytes, 100 + 10 + 0 + 100);
  EXPECT_EQ(Measure("1-2", layers, 0, 6).activation_bytes, 100 + 0 + 100 + 0 + 100);
}

}  // namespace
}  // namespace verbatim
