#include "trainer/ranks/listening.h"

#include <gtest/gtest.h>

namespace verbatim {
namespace {

using std::chrono::milliseconds;

Listening::Time At(int ms) {
  return Listening::Time{} + std::chrono::hours(1) + milliseconds(ms);
}

Listening Listener() {
  Listening listening(milliseconds(1000), milliseconds(100));
  listening.Listened(At(0));
  return listening;
}

TEST(Listening, FindsARankGoneAfterTheTimeout) {
  Listening listening = Listener();
  const auto heard = listening.Heard(At(0));
  for (int now = 100; now <= 1000; now += 100) {
    listening.Listened(At(now));
    EXPECT_FALSE(listening.IsGone(heard)) << now;
  }
  listening.Listened(At(1001));
  EXPECT_TRUE(listening.IsGone(heard));
}

TEST(Listening, HoldsNoAbsenceOfItsOwnAgainstARank) {
  Listening listening = Listener();
  const auto heard = listening.Heard(At(0));
  listening.Listened(At(100));
  listening.Listened(At(60'000));  // stopped for a minute, nothing taken since
  EXPECT_FALSE(listening.IsGone(heard));
  for (int now = 60'100; now <= 60'600; now += 100) {
    listening.Listened(At(now));
    EXPECT_FALSE(listening.IsGone(heard)) << now;
  }
  listening.Listened(At(60'701));
  listening.Listened(At(60'801));
  EXPECT_TRUE(listening.IsGone(heard));
}

TEST(Listening, CountsAnewFromWhatIsHeardAfterAnAbsence) {
  Listening listening = Listener();
  listening.Listened(At(5'000));
  const auto heard = listening.Heard(At(5'000));
  for (int now = 5'100; now <= 6'000; now += 100) listening.Listened(At(now));
  EXPECT_FALSE(listening.IsGone(heard));
  listening.Listened(At(6'001));
  EXPECT_TRUE(listening.IsGone(heard));
}

}  // namespace
}  // namespace verbatim
