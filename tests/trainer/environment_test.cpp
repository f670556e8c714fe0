// The environment says what bears on the bits, in key order, and is the same when asked again.
#include "trainer/environment.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace verbatim {
namespace {

TEST(EnvironmentTest, NamesTheFactsThatBearOnBits) {
  ConfigureDeterminism();
  const auto rows = DescribeEnvironment(at::kCPU, 3);
  EXPECT_EQ(DescribeEnvironment(at::kCPU, 3), rows);
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end(),
                             [](const auto& a, const auto& b) { return a.key < b.key; }));
  const auto value = [&](const std::string& key) {
    const auto row =
        std::find_if(rows.begin(), rows.end(), [&](const auto& r) { return r.key == key; });
    return row == rows.end() ? "missing" : row->value;
  };
  for (const char* key : {"cpu.model", "cpu.stepping", "cpu.instruction_sets", "libtorch.version",
                          "libtorch.cpu_capability"}) {
    EXPECT_NE(value(key), "missing") << key;
    EXPECT_FALSE(value(key).empty()) << key;
  }
  EXPECT_EQ(value("threads_per_stage"), "3");
  EXPECT_EQ(value("device.kind"), "cpu");
  EXPECT_EQ(value("deterministic_algorithms"), "true");
}

}  // namespace
}  // namespace verbatim
