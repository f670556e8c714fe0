// Proves which facts of an environment count under which numeric profile, and what is said of them.
#include "verify/environment_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/verify/sample_run.h"

namespace verbatim {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kHaswell =
    "sse3 ssse3 sse4.1 sse4.2 popcnt movbe lzcnt bmi1 bmi2 avx f16c fma avx2";
const std::string kNehalem = "sse3 ssse3 sse4.1 sse4.2 popcnt";

/// Whether one fact that differs in this way may change a bit.
bool IsNumeric(const std::string& key, const std::string& recorded, const std::string& here,
               Numerics numerics) {
  const auto differences = CompareEnvironments({{key, recorded}}, {{key, here}}, numerics);
  EXPECT_EQ(differences.size(), 1u) << key;
  return !differences.empty() && differences.front().numeric;
}

TEST(CompareEnvironments, ListsChangedMissingAndNewFacts) {
  const auto differences =
      CompareEnvironments({{"a", "1"}, {"b", "2"}, {"info.host", "x"}, {"d", "4"}},
                          {{"a", "1"}, {"c", "3"}, {"d", "5"}});
  ASSERT_EQ(differences.size(), 4u);
  EXPECT_EQ(differences[0].key, "b");
  EXPECT_EQ(differences[0].here, "");
  EXPECT_EQ(differences[1].key, "info.host");
  EXPECT_EQ(differences[2].key, "d");
  EXPECT_EQ(differences[2].recorded, "4");
  EXPECT_EQ(differences[2].here, "5");
  EXPECT_EQ(differences[3].key, "c");
  EXPECT_EQ(differences[3].recorded, "");
}

TEST(CompareEnvironments, DecidesNothingByWhatOneSideDidNotNote) {
  const auto differences = CompareEnvironments({{"b", "2"}, {"d", "4"}}, {{"c", "3"}, {"d", ""}});
  ASSERT_EQ(differences.size(), 3u);
  EXPECT_FALSE(differences[0].numeric);
  EXPECT_TRUE(differences[1].numeric) << "empty is a value";
  EXPECT_FALSE(differences[2].numeric);
}

TEST(CompareEnvironments, TheProcessorCountsOnlyUnderNative) {
  for (const char* key : {"cpu.vendor", "cpu.model", "cpu.family_model", "cpu.stepping"}) {
    EXPECT_TRUE(IsNumeric(key, "x", "y", Numerics::kNative)) << key;
    EXPECT_FALSE(IsNumeric(key, "x", "y", Numerics::kX8664V3)) << key;
    EXPECT_FALSE(IsNumeric(key, "x", "y", Numerics::kX8664)) << key;
  }
}

TEST(CompareEnvironments, LibrariesVariablesAndThreadsCountUnderEveryProfile) {
  for (const char* key :
       {"cpu.architecture", "libc.version", "libtorch.version", "libtorch.cpu_capability",
        "libtorch.mkl", "variable.MKL_CBWR", "threads_per_stage", "device.kind"}) {
    for (const Numerics numerics : {Numerics::kNative, Numerics::kX8664V3, Numerics::kX8664}) {
      EXPECT_TRUE(IsNumeric(key, "x", "y", numerics)) << key;
    }
  }
  EXPECT_FALSE(IsNumeric("info.kernel", "x", "y", Numerics::kNative));
}

TEST(CompareEnvironments, InstructionSetsCountAsFarAsTheProfileAsksForThem) {
  const struct {
    std::string recorded;
    std::string here;
    Numerics numerics;
    bool numeric;
  } cases[] = {
      {kHaswell, kHaswell + " avx512f", Numerics::kNative, true},
      {kHaswell, kHaswell + " avx512f", Numerics::kX8664V3, false},
      {kHaswell + " sse4a", kHaswell, Numerics::kX8664V3, false},
      {kHaswell, kNehalem, Numerics::kX8664V3, true},
      {kNehalem, kHaswell, Numerics::kX8664V3, true},
      {kHaswell, kNehalem, Numerics::kX8664, false},
      {kHaswell, "sse3 ssse3", Numerics::kX8664, true},
  };
  for (const auto& [recorded, here, numerics, numeric] : cases) {
    EXPECT_EQ(IsNumeric("cpu.instruction_sets", recorded, here, numerics), numeric)
        << recorded << " / " << here << " / " << ToString(numerics);
  }
}

TEST(ProfileOf, IsTheSpecsOrNative) {
  RunInfo run = MakeSampleRun().run;
  EXPECT_EQ(ProfileOf(run), Numerics::kNative);
  Spec spec = SampleSpec();
  spec.numerics = Numerics::kX8664V3;
  run.spec_json = SpecToJson(spec);
  EXPECT_EQ(ProfileOf(run), Numerics::kX8664V3);
  run.spec_json = "{";
  EXPECT_EQ(ProfileOf(run), Numerics::kNative);
}

TEST(EnvironmentRefusal, NamesTheFactsThatCountAndNoOthers) {
  const auto refusal =
      EnvironmentRefusal({{"cpu.model", "AMD EPYC", "Intel Xeon", true},
                          {"cpu.instruction_sets", "sse3 sse4a avx2", "sse3 avx2 avx512f", true},
                          {"variable.MKL_CBWR", "COMPATIBLE", "", true},
                          {"info.host", "here", "there", false}});
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->kind, ErrorKind::kFailed);
  for (const char* part :
       {"the numeric environment differs from the recorded one", "equal bits cannot be expected",
        "\n  cpu.model: recorded AMD EPYC, here Intel Xeon",
        "\n  cpu.instruction_sets: only recorded sse4a, only here avx512f",
        "\n  variable.MKL_CBWR: recorded COMPATIBLE, here nothing"}) {
    EXPECT_THAT(refusal->message, HasSubstr(part));
  }
  EXPECT_THAT(refusal->message, Not(HasSubstr("info.host")));
  EXPECT_THAT(refusal->hint, HasSubstr("--any-environment"));
}

TEST(EnvironmentRefusal, IsNoneWhereNothingCounts) {
  EXPECT_FALSE(EnvironmentRefusal({}).has_value());
  EXPECT_FALSE(EnvironmentRefusal({{"info.host", "here", "there", false}}).has_value());
}

}  // namespace
}  // namespace verbatim
