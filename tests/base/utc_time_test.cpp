// Proves the form of times and how old they are.
#include "base/utc_time.h"

#include <gtest/gtest.h>

#include <ctime>

namespace verbatim {
namespace {

TEST(UtcTimeTest, NowIsOfTheFormAndNotOld) {
  const std::string now = UtcNow();
  ASSERT_EQ(now.size(), 20u) << now;
  EXPECT_EQ(now[10], 'T');
  EXPECT_EQ(now[19], 'Z');
  EXPECT_LT(SecondsSince(now), 60);
}

TEST(UtcTimeTest, SecondsSinceCountsFromEarlierTimes) {
  const std::int64_t now = std::time(nullptr);
  const std::int64_t passed = SecondsSince("2001-09-09T01:46:40Z");  // 10^9 s after the epoch
  EXPECT_GE(passed, now - 1'000'000'000);
  EXPECT_LE(passed, now - 1'000'000'000 + 60);
}

TEST(UtcTimeTest, TheFutureAndNonsenseAreNow) {
  for (const char* text : {"2999-01-01T00:00:00Z", "", "yesterday", "2001-09-09",
                           "2001-09-09T01:46:40", "2001-09-09T01:46:40Z "}) {
    EXPECT_EQ(SecondsSince(text), 0) << text;
  }
}

}  // namespace
}  // namespace verbatim
