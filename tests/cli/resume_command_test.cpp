// Proves what `resume` hands to the engine, when there is nothing to go on with, and what it says
// where a subnet differs from what was recorded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/command_fixture.h"

namespace verbatim {
namespace {

using testing::HasSubstr;

class ResumeCommand : public CommandTest {
 protected:
  /// A sample run that was stopped after `subnets`.
  static SampleRun Stopped(std::size_t subnets) {
    SampleRun sample = MakeSampleRun();
    sample.subnets.resize(subnets);
    sample.evaluations.clear();
    sample.run.status = RunStatus::kInterrupted;
    sample.run.status_detail = "stopped on request";
    return sample;
  }
};

TEST_F(ResumeCommand, PassesEveryOption) {
  const std::string record = WriteRecord(Stopped(5));
  const std::string heads = Path("run.heads");
  const CommandResult result = Run({"resume",
                                    record,
                                    "--stages",
                                    "3",
                                    "--in-flight",
                                    "5",
                                    "--partition",
                                    "equal",
                                    "--recompute",
                                    "all",
                                    "--device-memory",
                                    "2MiB",
                                    "--device",
                                    "cpu",
                                    "--data",
                                    folder_,
                                    "--checkpoint-every",
                                    "7",
                                    "--keep-checkpoints",
                                    "4",
                                    "--head-file",
                                    heads,
                                    "--head-every",
                                    "2",
                                    "--no-stop-on-nan",
                                    "--quiet"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const ResumeRequest& request = engine_.resume_request.value();
  EXPECT_EQ(request.record, record);
  EXPECT_EQ(request.layout.stages, 3);
  EXPECT_EQ(request.layout.in_flight, 5);
  EXPECT_EQ(request.layout.partition, "equal");
  EXPECT_EQ(request.layout.recompute, "all");
  EXPECT_EQ(request.layout.device_memory, 2 << 20);
  EXPECT_EQ(request.device, "cpu");
  EXPECT_EQ(request.data_folder, std::filesystem::path(folder_));
  EXPECT_EQ(request.checkpoints.every, 7);
  EXPECT_EQ(request.checkpoints.keep, 4);
  EXPECT_EQ(request.heads.file, heads);
  EXPECT_EQ(request.heads.every, 2);
  EXPECT_FALSE(request.stop_on_nan);
  EXPECT_TRUE(request.quiet);
  EXPECT_THAT(request.command_line, HasSubstr("verbatim resume " + record));
}

TEST_F(ResumeCommand, HasNothingToDoForACompleteRun) {
  const CommandResult result = Run({"resume", WriteRecord(MakeSampleRun())});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("is complete: 12 subnets"));
  EXPECT_FALSE(engine_.resume_request);
}

TEST_F(ResumeCommand, ReportsADifferenceFromWhatWasRecorded) {
  engine_.resume_difference = Difference{};
  engine_.resume_difference->seq = 4;
  engine_.resume_difference->what = "loss";
  const CommandResult result = Run({"resume", WriteRecord(Stopped(5))});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.out, HasSubstr("First difference: subnet 4"));
}

TEST_F(ResumeCommand, PassesTheEnginesErrorOn) {
  engine_.resume_status = Failed("the disk is full");
  const CommandResult result = Run({"resume", WriteRecord(Stopped(5))});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.err, HasSubstr("the disk is full"));
}

TEST_F(ResumeCommand, AddsNothingToADamagedRecord) {
  SampleRun sample = Stopped(5);
  sample.subnets[3].samples.clear();
  const CommandResult result = Run({"resume", WriteRecord(sample)});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("is damaged, so nothing is added to it: subnet 3"));
  EXPECT_FALSE(engine_.resume_request);
}

TEST_F(ResumeCommand, DoesNotGoOnFromABrokenOrder) {
  SampleRun sample = Stopped(5);
  sample.subnets[4].accesses.back().read_seq = 1;
  const CommandResult result = Run({"resume", WriteRecord(sample)});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("does not follow its spec or the causal order"));
}

TEST_F(ResumeCommand, LeavesARunWithAnInjectedFaultAlone) {
  SampleRun sample = Stopped(5);
  sample.environment.push_back({"info.injected", "stale-read@12"});
  const CommandResult result = Run({"resume", WriteRecord(sample)});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("stale-read@12"));
}

TEST_F(ResumeCommand, GoesOnWithHeadsThatAMachineStoppedIn) {
  const std::string heads = Path("run.heads");
  const std::string record = WriteRecord(Stopped(5));
  ASSERT_EQ(Run({"head", record, "-o", heads}).exit_code, 0);
  const std::string whole = ReadFile(heads);
  for (const std::string& left : {std::string(), whole.substr(0, 1), whole.substr(0, 100),
                                  whole.substr(0, whole.size() - 1), whole + whole.substr(0, 50)}) {
    WriteFile("run.heads", left);
    const CommandResult result = Run({"resume", record, "--head-file", heads});
    EXPECT_EQ(result.exit_code, 0) << left << result.err;
  }
  WriteFile("run.heads", "a note of somebody's");
  EXPECT_EQ(Run({"resume", record, "--head-file", heads}).exit_code, 3);
  EXPECT_EQ(ReadFile(heads), "a note of somebody's");
}

TEST_F(ResumeCommand, RefusesHeadsOfAnotherHistory) {
  const std::string heads = Path("run.heads");
  ASSERT_EQ(Run({"head", WriteRecord(MakeSampleRun(), "other.db"), "-o", heads}).exit_code, 0);
  const CommandResult result = Run({"resume", WriteRecord(Stopped(5)), "--head-file", heads});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("is not the record that " + heads + " has heads of"));
  EXPECT_FALSE(engine_.resume_request);
}

}  // namespace
}  // namespace verbatim
