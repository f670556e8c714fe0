// Proves the discovery-sampling bound against its definition by enumeration.
#include "verify/confidence.h"

#include <gtest/gtest.h>

namespace verbatim {
namespace {

/// The probability that `drawn` of `recorded` miss all of `faulty`, as a product of draws.
double Missed(int recorded, int drawn, int faulty) {
  double probability = 1.0;
  for (int i = 0; i < drawn; ++i) {
    const int sound = recorded - faulty - i;
    if (sound <= 0) return 0.0;
    probability *= static_cast<double>(sound) / (recorded - i);
  }
  return probability;
}

TEST(Confidence, IsTheSmallestShareThatIsFound) {
  for (const int recorded : {1, 2, 16, 300}) {
    for (int drawn = 1; drawn <= recorded; ++drawn) {
      const double share = DetectableShare(recorded, drawn);
      const int faulty = static_cast<int>(share * recorded + 0.5);
      EXPECT_GE(1.0 - Missed(recorded, drawn, faulty), 0.95 - 1e-9) << drawn << " of " << recorded;
      EXPECT_LT(1.0 - Missed(recorded, drawn, faulty - 1), 0.95) << drawn << " of " << recorded;
    }
  }
}

TEST(Confidence, KnowsTheEnds) {
  EXPECT_EQ(DetectableShare(300, 0), 1.0);
  EXPECT_EQ(DetectableShare(300, 300), 1.0 / 300);
  // The rule of three: n draws bound the share by about 3 / n.
  EXPECT_NEAR(DetectableShare(1000000, 300), 3.0 / 300, 1e-4);
}

}  // namespace
}  // namespace verbatim
