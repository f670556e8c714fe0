// Proves how progress looks at every width, and that it is drawn seldom and only where enabled.
#include "cli/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace verbatim {
namespace {

TEST(RenderProgress, ShowsCountRateAndRemainingTime) {
  EXPECT_EQ(RenderProgress("training", 150, 300, 12.0, 79),
            "training  [###############...............]  150/300  50 %  12.5/s  12 s left");
  EXPECT_EQ(RenderProgress("training", 0, 300, 1.0, 60),
            "training  [..............................]  0/300  0 %");
  EXPECT_EQ(RenderProgress("t", 300, 300, 10.0, 60),
            "t  [#####################]  300/300  100 %  30.0/s  0 s left");
}

TEST(RenderProgress, SaysLongTimesInTheirUnits) {
  EXPECT_EQ(RenderProgress("t", 1, 101, 1.0, 40), "t  1/101  0 %  1.0/s  1 min 40 s left");
  EXPECT_EQ(RenderProgress("t", 1, 7501, 1.0, 40), "t  1/7501  0 %  1.0/s  2 h 5 min left");
}

TEST(RenderProgress, NeverExceedsTheTerminal) {
  for (int columns = 0; columns < 120; ++columns) {
    const std::string line = RenderProgress("training", 123456, 320000, 10.0, columns);
    EXPECT_LE(std::ssize(line), columns);
  }
}

TEST(RenderProgress, SurvivesAnEmptyTotal) {
  EXPECT_EQ(RenderProgress("t", 0, 0, 0.0, 20), "t  0/0  100 %");
}

/// A stream in memory and a clock in the test's hand.
class ProgressBarTest : public testing::Test {
 protected:
  ProgressBarTest() : stream_(open_memstream(&buffer_, &size_)) {}
  ~ProgressBarTest() override {
    std::fclose(stream_);
    std::free(buffer_);
  }
  ProgressBar::Options Options(bool enabled = true) {
    return {stream_, enabled, false, [this] { return now_; }};
  }
  std::string Drawn() {
    std::fflush(stream_);
    return std::string(buffer_, size_);
  }
  static int Count(const std::string& text, char c) {
    return static_cast<int>(std::count(text.begin(), text.end(), c));
  }

  char* buffer_ = nullptr;
  std::size_t size_ = 0;
  std::FILE* stream_;
  double now_ = 100.0;
};

TEST_F(ProgressBarTest, DrawsAtMostTenTimesASecond) {
  ProgressBar bar("training", 1000000, Options());
  for (int i = 0; i < 1000; ++i) {
    now_ += 0.001;
    bar.Update(i);
  }
  const int draws = Count(Drawn(), '\r');
  EXPECT_GE(draws, 9);
  EXPECT_LE(draws, 10);
}

TEST_F(ProgressBarTest, AlwaysDrawsTheEnd) {
  ProgressBar bar("training", 5, Options());
  bar.Update(5);
  EXPECT_NE(Drawn().find("5/5"), std::string::npos);
}

TEST_F(ProgressBarTest, LeavesNoTrace) {
  {
    ProgressBar bar("training", 5, Options());
    bar.Update(5);
    bar.Finish();
    const std::string finished = Drawn();
    EXPECT_EQ(finished.substr(finished.size() - 4), "\r\x1b[K");
    bar.Update(5);
    EXPECT_EQ(Drawn(), finished);
  }
}

TEST_F(ProgressBarTest, DrawsNothingWhereItIsNotEnabled) {
  {
    ProgressBar bar("training", 5, Options(false));
    bar.Update(5);
  }
  EXPECT_EQ(Drawn(), "");
}

TEST_F(ProgressBarTest, MayBeUpdatedFromManyThreads) {
  ProgressBar bar("training", 400, {stream_, true, false, {}});
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&bar, thread] {
      for (int i = 0; i < 100; ++i) bar.Update(thread * 100 + i + 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_NE(Drawn().find("400/400"), std::string::npos);
}

}  // namespace
}  // namespace verbatim
