// Proves where verbatim-engine is looked for, and what the numeric profiles set.
#include "cli/forward.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cli/version.h"
#include "tests/temporary_folder.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

const std::string kMarked = fmt::format("#!/bin/sh\n# verbatim-engine:{}\n", ToolVersion());

class Forward : public testing::Test {
 protected:
  Forward() {
    fs::create_directories(root_ / "bin");
    fs::create_directories(root_ / "libexec" / "verbatim");
    unsetenv("VERBATIM_ENGINE");
  }
  ~Forward() override {
    unsetenv("VERBATIM_ENGINE");
    for (const char* name : {"ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "MKL_CBWR"}) {
      unsetenv(name);
    }
  }
  static void MakeExecutable(const fs::path& path, const std::string& text = kMarked) {
    std::ofstream(path) << text;
    fs::permissions(path, fs::perms::owner_all);
  }

  const test::TemporaryFolder folder_;
  const fs::path root_ = folder_.path();
  const fs::path beside_ = root_ / "bin" / "verbatim-engine";
  const fs::path libexec_ = root_ / "libexec" / "verbatim" / "verbatim-engine";
};

TEST_F(Forward, PrefersTheVariableThenBesideThenLibexec) {
  MakeExecutable(libexec_);
  EXPECT_EQ(*FindEngine(root_ / "bin"), libexec_);
  MakeExecutable(beside_);
  EXPECT_EQ(*FindEngine(root_ / "bin"), beside_);
  MakeExecutable(root_ / "mine");
  setenv("VERBATIM_ENGINE", (root_ / "mine").c_str(), 1);
  EXPECT_EQ(*FindEngine(root_ / "bin"), root_ / "mine");
}

TEST_F(Forward, TakesNoFileThatIsNotExecutable) {
  std::ofstream(beside_) << "text";
  const auto found = FindEngine(root_ / "bin");
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(found.error().message, testing::HasSubstr("no trainer"));
}

TEST_F(Forward, TakesNoOtherProgramAndNoOtherVersion) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "is not verbatim-engine"},
      {"#!/bin/sh\nexit 0\n", "is not verbatim-engine"},
      {std::string("verbatim-engine:\0 /verbatim-engine", 34), "is not verbatim-engine"},
      {"verbatim-engine:", "is not verbatim-engine"},
      {"verbatim-engine: verbatim-engine:98.7",
       "is verbatim-engine 98.7, but this is verbatim " + std::string(ToolVersion())},
      {kMarked + "verbatim-engine:98.7", ""}};
  for (const auto& [text, message] : cases) {
    MakeExecutable(beside_, text);
    const auto found = FindEngine(root_ / "bin");
    ASSERT_EQ(found.has_value(), message.empty()) << text;
    if (found) continue;
    EXPECT_EQ(found.error().kind, ErrorKind::kFailed);
    EXPECT_EQ(found.error().message, beside_.string() + " " + message);
  }
}

TEST_F(Forward, DoesNotStartItselfForEver) {
  MakeExecutable(root_ / "mine");
  setenv("VERBATIM_ENGINE", (root_ / "mine").c_str(), 1);
  setenv("VERBATIM_FORWARDED", "1", 1);
  char* argv[] = {nullptr};
  const Error error = ForwardToEngine(argv, Numerics::kNative);
  unsetenv("VERBATIM_FORWARDED");
  EXPECT_EQ(error.kind, ErrorKind::kFailed);
  EXPECT_EQ(error.message, (root_ / "mine").string() + " started verbatim, not verbatim-engine");
}

TEST_F(Forward, DoesNotLookFurtherThanTheVariable) {
  MakeExecutable(beside_);
  setenv("VERBATIM_ENGINE", "/nowhere/engine", 1);
  const auto found = FindEngine(root_ / "bin");
  ASSERT_FALSE(found.has_value());
  EXPECT_THAT(found.error().message, testing::HasSubstr("/nowhere/engine"));
}

TEST_F(Forward, KnowsItsOwnFolder) {
  EXPECT_TRUE(fs::exists(ExecutableFolder() / "cli_test"));
}

TEST_F(Forward, SetsTheProfilesVariables) {
  SetNumericProfile(Numerics::kX8664V3);
  EXPECT_STREQ(std::getenv("ATEN_CPU_CAPABILITY"), "avx2");
  EXPECT_STREQ(std::getenv("ONEDNN_MAX_CPU_ISA"), "AVX2");
  EXPECT_STREQ(std::getenv("MKL_CBWR"), "COMPATIBLE");
  EXPECT_TRUE(IsNumericProfileSet(Numerics::kX8664V3));
  EXPECT_FALSE(IsNumericProfileSet(Numerics::kX8664));
  SetNumericProfile(Numerics::kX8664);
  EXPECT_STREQ(std::getenv("ATEN_CPU_CAPABILITY"), "default");
  EXPECT_STREQ(std::getenv("ONEDNN_MAX_CPU_ISA"), "SSE41");
  EXPECT_TRUE(IsNumericProfileSet(Numerics::kX8664));
}

TEST_F(Forward, RefusesAProfileThatTheProcessorCannotCompute) {
  Processor processor;
  processor.model = "Old CPU";
  processor.instruction_sets = {"sse3", "ssse3", "sse4.1", "avx"};
  EXPECT_TRUE(CheckProcessor(Numerics::kNative, processor).has_value());
  EXPECT_TRUE(CheckProcessor(Numerics::kX8664, processor).has_value());
  const Status fits = CheckProcessor(Numerics::kX8664V3, processor);
  ASSERT_FALSE(fits.has_value());
  EXPECT_EQ(fits.error().kind, ErrorKind::kFailed);
  for (const char* part : {"Old CPU", "fma", "avx2", "x86-64-v3"}) {
    EXPECT_THAT(fits.error().message, testing::HasSubstr(part));
  }
}

TEST_F(Forward, LeavesTheUsersVariablesAloneInTheNativeProfile) {
  setenv("ATEN_CPU_CAPABILITY", "mine", 1);
  SetNumericProfile(Numerics::kNative);
  EXPECT_STREQ(std::getenv("ATEN_CPU_CAPABILITY"), "mine");
  EXPECT_EQ(std::getenv("MKL_CBWR"), nullptr);
}

}  // namespace
}  // namespace verbatim
