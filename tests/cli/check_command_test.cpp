// Proves that `verbatim check` accepts what is valid and places what is not.
#include <gmock/gmock.h>

#include "tests/cli/command_fixture.h"

namespace verbatim {
namespace {

using testing::HasSubstr;

using CheckCommand = CommandTest;

TEST_F(CheckCommand, DescribesAValidSpec) {
  const std::string spec = WriteFile("spec.json", SampleSpecText());
  const CommandResult result = Run({"check", spec});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.out, spec +
                            ": sample is a valid spec; shapes were not checked, since there is "
                            "no folder " +
                            Path("data") +
                            "\n"
                            "  seed        7\n"
                            "  numerics    native\n"
                            "  data        idx in data\n"
                            "  supernet    stem, 3 blocks, head; 11 layers\n"
                            "  sampler     uniform\n"
                            "  training    12 subnets, batch 4 in 2 micro-batches\n"
                            "  optimizer   sgd, learning rate constant 0.1\n"
                            "  evaluation  2 subnets\n"
                            "  record      level weights\n");
}

TEST_F(CheckCommand, SaysHowTheStreamIsDrawnAndWhatIsReadLate) {
  const struct {
    const char* sampler;
    const char* said;
  } cases[] = {
      {R"({"kind": "fair"})", "fair, uses of a layer half a round apart or more"},
      {R"({"kind": "fair", "reuse_distance": 3})", "fair, uses of a layer 3 subnets apart or more"},
      {R"({"kind": "reorder", "of": {"kind": "uniform"}, "window": 9})",
       "reorder in a window of 9: uniform"}};
  for (const auto& c : cases) {
    std::string text = SampleSpecText();
    text.insert(text.find("\"op\": \"classifier\""), "\"delay\": 4, ");
    text.insert(text.find("\"repeat\""), "\"delay\": 2, ");
    text.insert(text.find("\"training\""), fmt::format("\"sampler\": {}, ", c.sampler));
    const CommandResult result = Run({"check", WriteFile("spec.json", text)});
    EXPECT_THAT(result.out, HasSubstr(fmt::format("\n  delays      blocks[0] 2, head 4\n"
                                                  "  sampler     {}\n",
                                                  c.said)))
        << result.err;
  }
}

TEST_F(CheckCommand, PlacesAnErrorInTheFile) {
  std::string text = SampleSpecText();
  text.replace(text.find("\"seed\""), 6, "\"sead\"");
  const CommandResult result = Run({"check", WriteFile("spec.json", text)});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("spec.json:1:"));
  EXPECT_THAT(result.err, HasSubstr("sead"));
}

/// Its shape is in the spec: no data is needed to find what does not fit.
TEST_F(CheckCommand, ChecksTheShapesOfATextWithoutItsData) {
  std::string text = R"({"name": "t", "data": {"format": "text", "folder": "d", "file": "t",
    "length": 8}, "supernet": {"stem": {"op": "embedding", "features": 8},
    "blocks": [{"candidates": [{"op": "attention", "heads": 3}]}], "head": {"op": "classifier"}},
    "training": {"subnets": 1, "batch": 4, "optimizer": {"kind": "sgd"},
    "lr": {"kind": "constant", "base": 0.1}}})";
  const CommandResult wrong = Run({"check", WriteFile("spec.json", text)});
  EXPECT_EQ(wrong.exit_code, 3);
  EXPECT_THAT(wrong.err, HasSubstr("supernet.blocks[0].candidates[0]: 3 heads do not divide 8"));
  text.replace(text.find("\"heads\": 3"), 10, "\"heads\": 2");
  const CommandResult valid = Run({"check", WriteFile("spec.json", text)});
  EXPECT_EQ(valid.exit_code, 0) << valid.err;
  EXPECT_THAT(valid.out, HasSubstr("its shapes fit, but its data was not read"));
}

TEST_F(CheckCommand, ReadsTheListOfSubnets) {
  std::string text = SampleSpecText();
  text.insert(text.find("\"training\""), R"("sampler": {"kind": "list", "file": "list.jsonl"}, )");
  const std::string spec = WriteFile("spec.json", text);
  const CommandResult missing = Run({"check", spec});
  EXPECT_EQ(missing.exit_code, 3);
  EXPECT_THAT(missing.err, HasSubstr(Path("list.jsonl") + ": the list of subnets cannot be read"));
  std::string list;
  for (int i = 0; i < 11; ++i) list += "[0, 1, 2]\n";
  WriteFile("list.jsonl", list + "[0, 1, 3]\n");
  const CommandResult wrong = Run({"check", spec});
  EXPECT_EQ(wrong.exit_code, 3);
  EXPECT_THAT(wrong.err, HasSubstr("list.jsonl: entry 11 chooses candidate 3 of block 2"));
  WriteFile("list.jsonl", list + "[0, 1, 2]\n");
  const CommandResult valid = Run({"check", spec});
  EXPECT_EQ(valid.exit_code, 0) << valid.err;
  EXPECT_THAT(valid.out, HasSubstr("list from list.jsonl"));
}

TEST_F(CheckCommand, SaysWhyAFileCannotBeRead) {
  // A link to itself cannot be opened by anybody, root included.
  std::filesystem::create_symlink("circle.json", Path("circle.json"));
  const std::pair<std::string, const char*> cases[] = {
      {"none.json", "it does not exist"},
      {"none/spec.json", "it does not exist"},
      {".", "it is a folder"},
      {"circle.json", "Too many levels of symbolic links"}};
  for (const auto& [name, why] : cases) {
    const CommandResult result = Run({"check", Path(name)});
    EXPECT_EQ(result.exit_code, 3);
    EXPECT_THAT(result.err, HasSubstr(Path(name) + ": the spec cannot be read: " + why));
  }
}

}  // namespace
}  // namespace verbatim
