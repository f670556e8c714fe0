// Proves which processors each numeric profile can be computed on.
#include "supernet/numeric_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbatim {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

const std::vector<std::string> kNehalem = {"sse3", "ssse3", "sse4.1", "sse4.2", "popcnt"};
const std::vector<std::string> kHaswell = {"sse3",  "ssse3", "sse4.1", "sse4.2", "popcnt",
                                           "movbe", "lzcnt", "bmi1",   "bmi2",   "avx",
                                           "f16c",  "fma",   "avx2"};

TEST(NumericProfile, NativeAsksForNothing) {
  EXPECT_THAT(MissingInstructionSets(Numerics::kNative, {}), IsEmpty());
}

TEST(NumericProfile, V3AsksForAvx2AndItsCompanions) {
  EXPECT_THAT(MissingInstructionSets(Numerics::kX8664V3, kHaswell), IsEmpty());
  EXPECT_THAT(MissingInstructionSets(Numerics::kX8664V3, kNehalem),
              ElementsAre("movbe", "lzcnt", "bmi1", "bmi2", "avx", "f16c", "fma", "avx2"));
  std::vector<std::string> without_fma = kHaswell;
  std::erase(without_fma, "fma");
  EXPECT_THAT(MissingInstructionSets(Numerics::kX8664V3, without_fma), ElementsAre("fma"));
}

TEST(NumericProfile, TheBaselineAsksForSse41) {
  EXPECT_THAT(MissingInstructionSets(Numerics::kX8664, kNehalem), IsEmpty());
  EXPECT_THAT(MissingInstructionSets(Numerics::kX8664, {"sse3"}), Contains("sse4.1"));
}

}  // namespace
}  // namespace verbatim
