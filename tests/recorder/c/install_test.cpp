// Proves that what is installed is all that a C program needs: the example is built by pkg-config
// and by CMake against a prefix of its own, runs, and leaves a sound record.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>

#include "recorder/content_digest.h"
#include "tests/store/sample_record.h"
#include "verify/examine.h"
#include "verify/report.h"

namespace verbatim {
namespace {

using namespace test;  // NOLINT
namespace fs = std::filesystem;

class InstallTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Run(fmt::format("'{}' --install '{}' --component recorder --prefix '{}'", CMAKE_PROGRAM,
                    BUILD_FOLDER, prefix_.string()));
  }

  // Everything that it prints is shown where it fails.
  void Run(const std::string& command) {
    const std::string log = (folder_ / "log").string();
    const int code = std::system(fmt::format("( {} ) > '{}' 2>&1", command, log).c_str());
    ASSERT_EQ(code, 0) << command << "\n" << ReadFile(log);
  }

  // Runs the example that was built and reads its record back.
  void TrainAndRead(const fs::path& program) {
    const fs::path record = folder_ / "run.db";
    Run(fmt::format("LD_LIBRARY_PATH='{}' '{}' '{}'", library_.string(), program.string(),
                    record.string()));
    const auto reader = RecordReader::Open(record);
    ASSERT_TRUE(reader) << reader.error().message;
    EXPECT_EQ((*reader)->Kind(), RunKind::kSteps);
    EXPECT_EQ((*reader)->Run()->status, RunStatus::kComplete);
    const Verdict verdict = ExamineRecord(**reader, record.string());
    EXPECT_EQ(verdict.exit_code(), 0) << RenderText(verdict);
    const auto subnets = ReadSubnets(**reader);
    ASSERT_TRUE(subnets) << subnets.error().message;
    ASSERT_EQ(subnets->size(), 50u);
    for (const SubnetRow& subnet : *subnets) {
      EXPECT_EQ(subnet.step->step, subnet.seq);
      EXPECT_EQ(subnet.step->settings, (Settings{{"lr", "0.1"}}));
      EXPECT_EQ(subnet.content_leaf, ContentLeaf(subnet));
      EXPECT_NE(subnet.accesses.at(1).weights, subnet.accesses.at(0).weights);
    }
  }

  TemporaryFolder folder_;
  fs::path prefix_ = folder_ / "prefix";
  fs::path library_ = prefix_ / LIBRARY_FOLDER;
};

TEST_F(InstallTest, TheExampleIsBuiltByPkgConfig) {
  Run(fmt::format(
      "'{}' -std=c99 -Wall -Wextra -Wpedantic -Werror '{}/linear.c'"
      " $(PKG_CONFIG_PATH='{}/pkgconfig' '{}' --cflags --libs verbatim-recorder)"
      " -o '{}'",
      C_COMPILER, EXAMPLE_FOLDER, library_.string(), PKG_CONFIG, (folder_ / "linear").string()));
  TrainAndRead(folder_ / "linear");
}

TEST_F(InstallTest, TheExampleIsBuiltByCMake) {
  const std::string build = (folder_ / "build").string();
  Run(
      fmt::format("'{0}' -S '{1}' -B '{2}' -DCMAKE_PREFIX_PATH='{3}' -DCMAKE_C_COMPILER='{4}' && "
                  "'{0}' --build '{2}'",
                  CMAKE_PROGRAM, EXAMPLE_FOLDER, build, prefix_.string(), C_COMPILER));
  TrainAndRead(folder_ / "build/linear");
}

TEST_F(InstallTest, TheLibraryExportsItsInterfaceAlone) {
  Run(
      fmt::format("nm -D --defined-only '{}/libverbatim_recorder.so' | grep -v ' verbatim_' > "
                  "'{}/others'; test ! -s '{}/others'",
                  library_.string(), folder_.path().string(), folder_.path().string()));
}

}  // namespace
}  // namespace verbatim
