// Proves that the processor describes itself as the kernel sees it, and names what it can use.
#include "base/processor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace verbatim {
namespace {

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

TEST(Processor, IsTheSameWhenAskedAgain) {
  EXPECT_EQ(DescribeProcessor().model, DescribeProcessor().model);
  EXPECT_EQ(DescribeProcessor().instruction_sets, DescribeProcessor().instruction_sets);
}

#if defined(__x86_64__)

/// First value of a field of /proc/cpuinfo.
std::string CpuInfo(const std::string& field) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(field + "\t")) return line.substr(line.find(": ") + 2);
  }
  return "";
}

TEST(Processor, IsTheOneThatLinuxNames) {
  const Processor processor = DescribeProcessor();
  EXPECT_EQ(processor.vendor, CpuInfo("vendor_id"));
  EXPECT_EQ(processor.model, CpuInfo("model name"));
  EXPECT_EQ(processor.family_model, CpuInfo("cpu family") + "/" + CpuInfo("model"));
  EXPECT_EQ(processor.stepping, CpuInfo("stepping"));
}

TEST(Processor, HasTheInstructionSetsThatLinuxLists) {
  std::istringstream words(CpuInfo("flags"));
  std::vector<std::string> flags;
  for (std::string word; words >> word;) flags.push_back(word);
  ASSERT_FALSE(flags.empty());
  const std::vector<std::string> sets = DescribeProcessor().instruction_sets;
  const struct {
    const char* set;
    const char* flag;
  } names[] = {{"sse3", "pni"},
               {"ssse3", "ssse3"},
               {"sse4a", "sse4a"},
               {"sse4.1", "sse4_1"},
               {"sse4.2", "sse4_2"},
               {"popcnt", "popcnt"},
               {"movbe", "movbe"},
               {"lzcnt", "abm"},
               {"bmi1", "bmi1"},
               {"bmi2", "bmi2"},
               {"avx", "avx"},
               {"f16c", "f16c"},
               {"fma4", "fma4"},
               {"fma", "fma"},
               {"avx2", "avx2"},
               {"avx_vnni", "avx_vnni"},
               {"avx512f", "avx512f"},
               {"avx512vl", "avx512vl"},
               {"avx512_vnni", "avx512_vnni"},
               {"avx512_bf16", "avx512_bf16"},
               {"amx_tile", "amx_tile"},
               {"amx_int8", "amx_int8"}};
  for (const auto& [set, flag] : names) {
    EXPECT_EQ(Contains(sets, set), Contains(flags, flag)) << set;
  }
}

#endif

}  // namespace
}  // namespace verbatim
