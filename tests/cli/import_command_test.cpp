#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/command_fixture.h"

namespace verbatim {
namespace {

using testing::HasSubstr;

class ImportCommand : public CommandTest {
 protected:
  CommandResult Import(const std::string& from, const std::string& text,
                       const std::string& record = "run.db") {
    return Run(
        {"import", "--from", from, WriteFile("losses.log", text), "-o", Path(record), "--force"});
  }
  std::string StepOf(const std::string& record, const std::string& step) {
    return Run({"show", Path(record), "--step", step, "--format", "json"}).out;
  }
};

TEST_F(ImportCommand, ReadsJsonLines) {
  const CommandResult result =
      Import("jsonl",
             "{\"step\": 20, \"loss\": 2.25, \"settings\": {\"lr\": 0.1, \"warm\": true}}\r\n"
             "\n"
             "{\"step\": 10, \"loss_bits\": \"0x40135d8e\", \"batch\": "
             "\"000102030405060708090a0b0c0d0e0f\"}\n"
             "{\"step\": 30, \"loss\": \"NaN\"}\n"
             "{\"step\": 40, \"loss\": null}");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, Path("run.db") + ": 4 steps, from 10 to 40\n");
  const auto ten = nlohmann::json::parse(StepOf("run.db", "10"));
  EXPECT_EQ(ten["loss"]["bits"], "0x40135d8e");
  EXPECT_EQ(ten["batch_digest"], "000102030405060708090a0b0c0d0e0f");
  const auto twenty = nlohmann::json::parse(StepOf("run.db", "20"));
  EXPECT_EQ(twenty["loss"]["value"], 2.25);
  EXPECT_EQ(twenty["settings"], nlohmann::json({{"lr", 0.1}, {"warm", true}}));
  EXPECT_EQ(Run({"verify", Path("run.db")}).exit_code, 0);
  const CommandResult shown = Run({"show", Path("run.db")});
  EXPECT_THAT(shown.out, HasSubstr(": losses\n"));
  EXPECT_THAT(shown.out, HasSubstr("level     losses"));
}

TEST_F(ImportCommand, ReadsWhatNaspipePrints) {
  const std::string one =
      "Finished initializing process group; backend: gloo, rank: 3\n"
      "Stage: [3] Epoch: [0][1/49372]\tTime: 0.784 (0.784)\tId: 1\tTokens: 761\t"
      "Output: 8336.44824218750000000000000000000000\t\n"
      "Stage: [3] Epoch: [0][2/49372]\tTime: 1.943 (1.364)\tId: 0\tTokens: 3293\t"
      "Output: 36547.63671875000000000000000000000000\t\n";
  std::string two = one;
  two.replace(two.find("36547.63671875"), 14, "36547.63281250");
  ASSERT_EQ(Import("naspipe-log", one, "one.db").exit_code, 0);
  ASSERT_EQ(Import("naspipe-log", two, "two.db").exit_code, 0);
  const auto step = nlohmann::json::parse(StepOf("one.db", "0"));
  EXPECT_EQ(step["loss"]["value"], 36547.63671875);
  EXPECT_EQ(step["settings"], nlohmann::json({{"epoch", 0}, {"tokens", 3293}}));
  EXPECT_EQ(Run({"diff", Path("one.db"), Path("one.db")}).exit_code, 2);
  const CommandResult diff = Run({"diff", Path("one.db"), Path("two.db")});
  EXPECT_EQ(diff.exit_code, 1) << diff.err;
  EXPECT_THAT(diff.out, HasSubstr("First difference: step 0, forward, computation"));
}

TEST_F(ImportCommand, NamesTheLineOfWhatIsWrong) {
  const auto refused = [&](const std::string& from, const std::string& text,
                           const std::string& message) {
    const CommandResult result = Import(from, text);
    EXPECT_EQ(result.exit_code, 3) << text;
    EXPECT_THAT(result.err, HasSubstr(message)) << text;
  };
  const std::string first = "{\"step\": 1, \"loss\": 1}\n";
  refused("jsonl", "", "there is no step in it");
  refused("jsonl", first + "{\"step\": 2,", "losses.log:2:12: ");
  refused("jsonl", first + "[]", "losses.log:2:1: ");
  refused("jsonl", first + "{\"loss\": 2}", "losses.log:2:1: step: required, but missing");
  refused("jsonl", first + "{\"step\": -1}", "losses.log:2:10: step: must be");
  refused("jsonl", first + "{\"step\": 2, \"los\": 1}", "losses.log:2:13: ");
  refused("jsonl", first + "{\"step\": 2, \"loss\": \"low\"}", "\"low\" is no number");
  refused("jsonl", first + "{\"step\": 2, \"loss\": 1e300}", "is beyond a float32");
  refused("jsonl", first + "{\"step\": 2, \"loss_bits\": \"40135d8e\"}", "expected 0x and 8");
  refused("jsonl", first + "{\"step\": 2, \"loss\": 1, \"loss_bits\": \"0x00000000\"}",
          "there is a loss already");
  refused("jsonl", first + "{\"step\": 2, \"batch\": \"00\"}", "expected 32 hexadecimal digits");
  refused("jsonl", first + "{\"step\": 2, \"settings\": {\"lr\": []}}", "losses.log:2:");
  refused("jsonl", first + "\n" + first, "losses.log:3: step 1 is on line 1 already");
  refused("naspipe-log", "hello\n", "no line tells a subnet's Id and Output");
  const std::string head = "Stage: [3] Epoch: [0][1/9]\tTime: 0.7 (0.7)\t";
  refused("naspipe-log", "x\n" + head + "Id: a\tTokens: 7\tOutput: 8.5\t", "losses.log:2: its Id");
  refused("naspipe-log", head + "Id: 1\tTokens: 7\tOut", "losses.log:1: its Output");
  refused("naspipe-log", head + "Id: 1\tTokens: x\tOutput: 8.5\t", "losses.log:1: its Tokens");
  const CommandResult absent =
      Run({"import", "--from", "jsonl", Path("none"), "-o", Path("run.db")});
  EXPECT_EQ(absent.exit_code, 3);
}

TEST_F(ImportCommand, ReplacesNoRecordUnasked) {
  ASSERT_EQ(Import("jsonl", "{\"step\": 1}").exit_code, 0);
  const CommandResult again =
      Run({"import", "--from", "jsonl", Path("losses.log"), "-o", Path("run.db")});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_EQ(Run({"import", "--from", "csv", Path("losses.log"), "-o", Path("x.db")}).exit_code, 2);
  EXPECT_EQ(Run({"import", "--from", "jsonl", Path("losses.log")}).exit_code, 2);
}

}  // namespace
}  // namespace verbatim
