// Proves that heads are taken, kept and held against records, from the command line.
#include <gmock/gmock.h>

#include "store/head.h"
#include "store/proof.h"
#include "store/reader.h"
#include "tests/cli/command_fixture.h"

namespace verbatim {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

/// The sample run, stopped after that many subnets.
SampleRun Stopped(std::size_t subnets) {
  SampleRun run = MakeSampleRun();
  run.subnets.resize(subnets);
  run.evaluations.clear();
  run.run.status = RunStatus::kRunning;
  return run;
}

class HeadCommand : public CommandTest {
 protected:
  /// Of a run that is still going on: Close is never called.
  std::string WriteRunning(std::size_t subnets, const std::string& name) const {
    const SampleRun run = Stopped(subnets);
    auto writer = RecordWriter::Create(Path(name), run.run, run.environment, run.layers, false);
    VERBATIM_CHECK(writer.has_value(), "{}", writer.error().message);
    VERBATIM_CHECK((*writer)->WriteSubnets(run.subnets).has_value());
    return Path(name);
  }
  std::string WriteForged(const std::string& name) const {
    SampleRun run = MakeSampleRun();
    run.subnets[5].loss_bits ^= 1;
    return WriteRecord(run, name);
  }
  void MakeKey() { ASSERT_EQ(Run({"keygen", Path("run.key")}).exit_code, 0); }
};

TEST_F(HeadCommand, PrintsOneLine) {
  const CommandResult result = Run({"head", WriteRecord(MakeSampleRun())});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto heads = ParseHeads(result.out, "stdout");
  ASSERT_TRUE(heads) << heads.error().message;
  ASSERT_EQ(heads->size(), 1u);
  EXPECT_EQ(heads->front().subnets, 12);
  EXPECT_TRUE(heads->front().end);
  EXPECT_FALSE(heads->front().signature);
}

TEST_F(HeadCommand, EqualRunsHaveEqualContentRoots) {
  SampleRun other = MakeSampleRun();
  other.run.stages = 3;
  for (SubnetRow& row : other.subnets) row.accesses[0].stage = 2;
  const auto a = ParseHeads(Run({"head", WriteRecord(MakeSampleRun(), "a.db")}).out, "a");
  const auto b = ParseHeads(Run({"head", WriteRecord(other, "b.db")}).out, "b");
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->front().content_root, b->front().content_root);
  EXPECT_EQ(a->front().start, b->front().start);
  EXPECT_NE(a->front().layout_root, b->front().layout_root);
  EXPECT_NE(a->front().circumstances, b->front().circumstances);
}

TEST_F(HeadCommand, KeepsSignedHeadsThatVerify) {
  MakeKey();
  const std::string record = WriteRecord(MakeSampleRun());
  for (int i = 0; i < 2; ++i) {
    const CommandResult result =
        Run({"head", record, "-o", Path("run.head"), "--sign", Path("run.key")});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, StartsWith(Path("run.head") + ": head of 12 subnets, content root "));
  }
  EXPECT_EQ(ReadHeads(Path("run.head"))->size(), 2u);
  const CommandResult verified =
      Run({"verify", record, "--head", Path("run.head"), "--key", Path("run.key.pub")});
  EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("passed   heads        2 heads, the newest of 12 subnets, "
                                      "signed by "));
}

TEST_F(HeadCommand, OlderHeadVerifiesARunThatWentOn) {
  ASSERT_EQ(Run({"head", WriteRunning(7, "early.db"), "-o", Path("run.head")}).exit_code, 0);
  const std::string record = WriteRecord(MakeSampleRun());
  EXPECT_EQ(Run({"verify", record, "--head", Path("run.head")}).exit_code, 0);
  EXPECT_EQ(Run({"head", record, "-o", Path("run.head")}).exit_code, 0);
  const auto heads = ReadHeads(Path("run.head"));
  ASSERT_TRUE(heads);
  EXPECT_EQ(heads->at(0).subnets, 7);
  EXPECT_EQ(heads->at(1).subnets, 12);
}

TEST_F(HeadCommand, FindsAForgedRecord) {
  ASSERT_EQ(Run({"head", WriteRecord(MakeSampleRun()), "-o", Path("run.head")}).exit_code, 0);
  const std::string forged = WriteForged("forged.db");
  EXPECT_EQ(Run({"verify", forged}).exit_code, 0);
  const CommandResult result = Run({"verify", forged, "--head", Path("run.head")});
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.out, HasSubstr("FAILED   heads"));
  EXPECT_THAT(result.out, HasSubstr("content of subnets 0 to 11: changed"));
  EXPECT_THAT(result.out, EndsWith("not the record that the heads are of (damaged or forged)\n"));
  const CommandResult json =
      Run({"verify", forged, "--head", Path("run.head"), "--format", "json"});
  EXPECT_THAT(json.out, HasSubstr("\"class\": \"damaged or forged\""));
  for (const char* format : {"junit", "markdown", "html"}) {
    const CommandResult report =
        Run({"verify", forged, "--head", Path("run.head"), "--format", format});
    EXPECT_EQ(report.exit_code, 1);
    EXPECT_THAT(report.out, HasSubstr("damaged or forged")) << format;
  }
}

TEST_F(HeadCommand, WritesNothingWhereARecordDoesNotExtendItsHeads) {
  ASSERT_EQ(Run({"head", WriteRecord(MakeSampleRun()), "-o", Path("run.head")}).exit_code, 0);
  const std::string before = ReadFile(Path("run.head"));
  const std::string forged = WriteForged("forged.db");
  const CommandResult same_file = Run({"head", forged, "-o", Path("run.head")});
  EXPECT_EQ(same_file.exit_code, 1);
  EXPECT_THAT(same_file.out, HasSubstr("forged.db does not extend 1 head:\n"));
  EXPECT_EQ(ReadFile(Path("run.head")), before);
  const CommandResult other_file =
      Run({"head", forged, "--extends", Path("run.head"), "-o", Path("new.head")});
  EXPECT_EQ(other_file.exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(Path("new.head")));
}

TEST_F(HeadCommand, ProvesThatARunContinuesAnOlderHead) {
  ASSERT_EQ(Run({"head", WriteRunning(7, "early.db"), "-o", Path("old.head")}).exit_code, 0);
  const CommandResult result =
      Run({"head", WriteRecord(MakeSampleRun()), "--extends", Path("old.head"), "-o",
           Path("new.head"), "--proof", Path("x.proof")});
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  const CommandResult proof =
      Run({"proof", Path("x.proof"), "--head", Path("old.head"), "--head", Path("new.head")});
  EXPECT_EQ(proof.exit_code, 0) << proof.out << proof.err;
  ASSERT_EQ(Run({"head", WriteForged("forged.db"), "-o", Path("forged.head")}).exit_code, 0);
  EXPECT_EQ(
      Run({"proof", Path("x.proof"), "--head", Path("old.head"), "--head", Path("forged.head")})
          .exit_code,
      1);
}

TEST_F(HeadCommand, ProvesThatASubnetIsInARecord) {
  ASSERT_EQ(Run({"head", WriteRunning(7, "early.db"), "-o", Path("old.head")}).exit_code, 0);
  const std::string record = WriteRecord(MakeSampleRun());
  ASSERT_EQ(Run({"head", record, "-o", Path("new.head")}).exit_code, 0);
  ASSERT_EQ(Run({"show", record, "--subnet", "5", "--proof", Path("now.proof")}).exit_code, 0);
  ASSERT_EQ(Run({"show", record, "--subnet", "5", "--proof", Path("old.proof"), "--head",
                 Path("old.head")})
                .exit_code,
            0);
  const CommandResult now = Run({"proof", Path("now.proof"), "--head", Path("new.head")});
  EXPECT_EQ(now.exit_code, 0) << now.out << now.err;
  EXPECT_THAT(now.out, HasSubstr("subnet 5 is one of the 12 subnets of the head of "));
  EXPECT_EQ(Run({"proof", Path("old.proof"), "--head", Path("old.head")}).exit_code, 0);
  EXPECT_EQ(Run({"proof", Path("old.proof"), "--head", Path("new.head")}).exit_code, 1);
  const CommandResult later = Run(
      {"show", record, "--subnet", "9", "--proof", Path("x.proof"), "--head", Path("old.head")});
  EXPECT_EQ(later.exit_code, 2);
  EXPECT_THAT(later.err, HasSubstr("subnet 9 is not under the head, which has 7 subnets"));
  const CommandResult forged = Run({"show", WriteForged("forged.db"), "--subnet", "5", "--proof",
                                    Path("x.proof"), "--head", Path("new.head")});
  EXPECT_EQ(forged.exit_code, 3);
  EXPECT_THAT(forged.err, HasSubstr("does not bear out that subnet 5 is under the head"));
  EXPECT_FALSE(std::filesystem::exists(Path("x.proof")));
}

TEST_F(HeadCommand, FindsTheFirstDifferenceThroughTheTrees) {
  const std::string a = WriteRecord(MakeSampleRun(), "a.db");
  const CommandResult equal = Run({"diff", a, WriteRecord(MakeSampleRun(), "b.db"), "--first"});
  EXPECT_EQ(equal.exit_code, 0) << equal.out << equal.err;
  EXPECT_THAT(equal.out, EndsWith("12 subnets compared by their trees: equal; no row was read\n"));
  const CommandResult other = Run({"diff", a, WriteForged("c.db"), "--first"});
  EXPECT_EQ(other.exit_code, 1) << other.err;
  EXPECT_THAT(other.out, HasSubstr("First difference: subnet 5, forward, computation"));
  EXPECT_THAT(other.out, HasSubstr("next      verbatim diff " + a + " " + Path("c.db")));
  const CommandResult json = Run({"diff", a, Path("c.db"), "--first", "--format", "json"});
  EXPECT_THAT(json.out, HasSubstr("\"trees_compared\": 12,"));
  EXPECT_EQ(Run({"diff", a, Path("c.db"), "--first", "--explain"}).exit_code, 2);
  EXPECT_EQ(Run({"diff", a, Path("c.db"), "--first", "--format", "html"}).exit_code, 2);
}

TEST_F(HeadCommand, RefusesPathsThatWouldBeOverwritten) {
  MakeKey();
  const std::string record = WriteRecord(MakeSampleRun());
  EXPECT_EQ(Run({"head", record, "-o", record}).exit_code, 2);
  EXPECT_EQ(Run({"head", record, "-o", Path("run.key"), "--sign", Path("run.key")}).exit_code, 2);
  EXPECT_EQ(Run({"head", record, "--proof", Path("x.proof")}).exit_code, 2);
  EXPECT_EQ(Run({"verify", record, "--key", Path("run.key.pub")}).exit_code, 2);
  EXPECT_EQ(Run({"head", record, "-o", Path("none/run.head")}).exit_code, 4);
  EXPECT_EQ(Run({"head", Path("none.db")}).exit_code, 3);
  EXPECT_EQ(Run({"head", record, "-o", WriteFile("text", "no head\n")}).exit_code, 3);
  EXPECT_EQ(Run({"verify", record, "--head", Path("text")}).exit_code, 3);
}

TEST_F(HeadCommand, TrainingTakesTheOptions) {
  MakeKey();
  const std::string spec = WriteFile("spec.json", SampleSpecText());
  const auto train = [&](std::vector<std::string> options) {
    options.insert(options.begin(), {"train", spec, "-o", Path("run.db")});
    return Run(options);
  };
  ASSERT_EQ(train({"--head-file", Path("run.head"), "--head-every", "3", "--sign", Path("run.key")})
                .exit_code,
            0);
  EXPECT_EQ(engine_.train_request.heads.file, Path("run.head"));
  EXPECT_EQ(engine_.train_request.heads.every, 3);
  EXPECT_EQ(engine_.train_request.heads.key, Path("run.key"));
  EXPECT_EQ(train({"--head-every", "3"}).exit_code, 2);
  EXPECT_EQ(train({"--sign", Path("run.key")}).exit_code, 2);
  EXPECT_EQ(train({"--head-file", Path("x"), "--head-every", "0"}).exit_code, 2);
  EXPECT_EQ(train({"--head-file", Path("x"), "--sign", Path("run.key.pub")}).exit_code, 3);
  EXPECT_EQ(train({"--head-file", spec}).exit_code, 2);
  EXPECT_EQ(Run({"train", spec, "--record", "off", "--head-file", Path("x")}).exit_code, 2);
  const CommandResult old = train({"--head-file", WriteFile("old.head", "something")});
  EXPECT_EQ(old.exit_code, 2);
  EXPECT_THAT(old.err, HasSubstr("it may hold an earlier run's heads"));
}

}  // namespace
}  // namespace verbatim
