// Proves which files the sampler `list` reads, and what it says of the others.
#include "supernet/list_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbatim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<std::uint32_t> kCandidates = {3, 2};

TEST(ReadChoices, ReadsEveryForm) {
  const char* texts[] = {
      "[[0, 1], [2, 0]]",
      "[[0,1],\n[2,0],\n[1,1]]",
      "[0, 1]\n[2, 0]\n",
      "\r\n[0, 1]\r\n\r\n[2, 0]",
      R"({"op": [0, 1], "part": [1, 2]})"
      "\n"
      R"({"part": [[3], {"op": [9]}], "op": [2, 0]})",
      R"([{"op": [0, 1], "part": null}, {"op": [2, 0]}])",
      "[0, 1]\n[2, 0]\n[9, 9, the rest is not read]",
  };
  for (const char* text : texts) {
    const auto choices = ReadChoices(text, "list.json", kCandidates, 2);
    ASSERT_TRUE(choices) << text << "\n" << choices.error().message;
    EXPECT_THAT(*choices, ElementsAre(0, 1, 2, 0)) << text;
  }
}

TEST(ReadChoices, SaysWhichEntryIsWrong) {
  const struct {
    const char* text;
    const char* what;
  } cases[] = {
      {"", "holds 0 entries, but training.subnets is 2"},
      {"[0, 1]", "holds 1 entries, but training.subnets is 2"},
      {"[[0, 1]]", "holds 1 entries, but training.subnets is 2"},
      {"[[0, 1], [2, 2]]", "entry 1 chooses candidate 2 of block 1, which has 2"},
      {"[[0, 1], [-1, 0]]", "entry 1 chooses candidate -1 of block 0, which has 3"},
      {"[0, 18446744073709551615]", "entry 0 chooses candidate"},
      {"[0, 1]\n[2]", "entry 1 has 1 choices for 2 blocks"},
      {"[0, 1]\n[2, 0, 0]", "entry 1 has more than 2 choices"},
      {"[0, 1.5]", "entry 0 holds 1.5 instead of a candidate's number"},
      {"[0, [1]]", "entry 0 holds a list where"},
      {"[0, {}]", "entry 0 holds an object where"},
      {"7", "entry 0 is a number, not a list"},
      {"[[0, 1], null]", "entry 1 is null, not a list"},
      {"{\"ops\": [0, 1]}", "entry 0 has no \"op\""},
      {"{\"op\": 3}", "entry 0 has a number as \"op\", not a list"},
      {"{\"op\": {}}", "entry 0 has no \"op\""},
      {"{\"op\": [0, 1], \"op\": [0, 1]}", "entry 0 has two \"op\""},
      {"{\"op\": [0]}", "entry 0 has 1 choices for 2 blocks"},
      {"[[0, 1], [2, 0", "entry 1 is malformed JSON"},
      {"[0, 1]\n[2; 0]", "entry 1 is malformed JSON"},
  };
  for (const auto& c : cases) {
    const auto choices = ReadChoices(c.text, "list.json", kCandidates, 2);
    ASSERT_FALSE(choices) << c.text;
    EXPECT_EQ(choices.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(choices.error().message, HasSubstr("list.json: ")) << c.text;
    EXPECT_THAT(choices.error().message, HasSubstr(c.what)) << c.text;
  }
}

TEST(ListSampler, DrawsInAnyOrder) {
  const ListSampler sampler({0, 1, 2, 0}, 2);
  EXPECT_THAT(sampler.Draw(1), ElementsAre(2, 0));
  EXPECT_THAT(sampler.Draw(0), ElementsAre(0, 1));
}

}  // namespace
}  // namespace verbatim
