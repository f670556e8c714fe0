// Proves that CHECK lets true conditions pass and ends the program with its context otherwise.
#include "base/check.h"

#include <gtest/gtest.h>

namespace verbatim {
namespace {

TEST(Check, PassesAndEvaluatesOnce) {
  int evaluated = 0;
  VERBATIM_CHECK(++evaluated == 1);
  VERBATIM_CHECK(++evaluated == 2, "never formatted: {}", evaluated);
  EXPECT_EQ(evaluated, 2);
}

TEST(Check, IsOneStatement) {
  if (true)
    VERBATIM_CHECK(true);
  else
    FAIL();
}

TEST(CheckDeathTest, AbortsWithConditionPlaceAndContext) {
  EXPECT_DEATH(VERBATIM_CHECK(1 + 1 == 3),
               "CHECK failed: 1 \\+ 1 == 3 at .*check_test\\.cpp:[0-9]+");
  EXPECT_DEATH(VERBATIM_CHECK(false, "stage {} of {}", 3, 8), "stage 3 of 8");
}

}  // namespace
}  // namespace verbatim
