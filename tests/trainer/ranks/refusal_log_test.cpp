#include "trainer/ranks/refusal_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace verbatim {
namespace {

using ::testing::ElementsAre;

TEST(RefusalLog, WritesOneLineASecondAndCountsTheRest) {
  std::vector<std::string> lines;
  RefusalLog log([&](const std::string& line) { lines.push_back(line); });
  const auto at = [](int ms) {
    return RefusalLog::Clock::time_point{} + std::chrono::hours(1) + std::chrono::milliseconds(ms);
  };
  log.Add("10.0.0.9:7", "first", at(0));
  log.Add("10.0.0.9:8", "second", at(1));
  log.Add("10.0.0.9:9", "third", at(999));
  log.Add("10.0.0.9:10", "fourth", at(1000));
  log.Add("10.0.0.9:11", "fifth", at(2000));
  EXPECT_THAT(lines, ElementsAre("refused a connection from 10.0.0.9:7: first",
                                 "refused a connection from 10.0.0.9:10: fourth "
                                 "(2 more were refused before)",
                                 "refused a connection from 10.0.0.9:11: fifth"));
}

TEST(RefusalLog, MayHaveNobodyToTell) {
  RefusalLog log(nullptr);
  log.Add("10.0.0.9:7", "first");
}

}  // namespace
}  // namespace verbatim
