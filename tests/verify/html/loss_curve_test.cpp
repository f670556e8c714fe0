// Proves that decimation leaves few points, loses no extreme, and keeps everything of a short run.
#include "verify/html/loss_curve.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace verbatim {
namespace {

LossCurve CurveOf(const std::vector<float>& losses) {
  LossCurveBuilder builder(std::ssize(losses));
  std::int64_t seq = 0;
  for (const float loss : losses) builder.Add(seq++, std::bit_cast<std::uint32_t>(loss));
  return builder.Finish();
}

TEST(LossCurve, KeepsEveryLossOfAShortRun) {
  const LossCurve curve = CurveOf({3.0F, 1.0F, 2.0F});
  ASSERT_EQ(curve.points.size(), 3U);
  EXPECT_EQ(curve.points[1].seq, 1);
  EXPECT_EQ(curve.points[1].loss, 1.0F);
  EXPECT_EQ(curve.subnets_per_bucket, 1);
  EXPECT_EQ(curve.windows.size(), 3U);
}

TEST(LossCurve, LosesNoExtremeOfALongRun) {
  std::vector<float> losses(100'003, 1.0F);
  losses[77'777] = 9.0F;
  losses[77'778] = -9.0F;
  losses.back() = 5.0F;
  const LossCurve curve = CurveOf(losses);
  EXPECT_LE(std::ssize(curve.points), LossCurve::kPointsMax);
  EXPECT_LE(std::ssize(curve.windows), LossCurve::kWindowsMax);
  EXPECT_GT(curve.subnets_per_bucket, 1);
  const auto has = [&](std::int64_t seq, float loss) {
    for (const LossPoint& point : curve.points) {
      if (point.seq == seq && point.loss == loss) return true;
    }
    return false;
  };
  EXPECT_TRUE(has(77'777, 9.0F));
  EXPECT_TRUE(has(77'778, -9.0F));
  EXPECT_TRUE(has(100'002, 5.0F));
  for (std::size_t i = 1; i < curve.points.size(); ++i) {
    ASSERT_LT(curve.points[i - 1].seq, curve.points[i].seq);
  }
  EXPECT_EQ(curve.windows.front().first, 0);
  EXPECT_EQ(curve.windows.back().last, 100'002);
}

TEST(LossCurve, WindowsHoldLowestMeanAndHighest) {
  std::vector<float> losses;
  for (int i = 0; i < 100; ++i) losses.push_back(i % 2 == 0 ? 1.0F : 4.0F);
  const LossCurve curve = CurveOf(losses);
  ASSERT_EQ(curve.windows.size(), 50U);
  EXPECT_EQ(curve.windows[1].first, 2);
  EXPECT_EQ(curve.windows[1].last, 3);
  EXPECT_EQ(curve.windows[1].lowest, 1.0F);
  EXPECT_EQ(curve.windows[1].mean, 2.5);
  EXPECT_EQ(curve.windows[1].highest, 4.0F);
}

TEST(LossCurve, CountsWhatIsNotFinite) {
  const LossCurve curve = CurveOf({1.0F, std::nanf(""), std::numeric_limits<float>::infinity()});
  EXPECT_EQ(curve.points.size(), 1U);
  EXPECT_EQ(curve.not_finite, 2);
  EXPECT_EQ(curve.first_not_finite, 1);
  const LossCurve none = CurveOf({std::nanf("")});
  EXPECT_TRUE(none.points.empty());
  EXPECT_TRUE(none.windows.empty());
  EXPECT_TRUE(CurveOf({}).points.empty());
}

}  // namespace
}  // namespace verbatim
