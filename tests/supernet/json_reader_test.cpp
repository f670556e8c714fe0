// Proves that every value knows its place and that no text, however broken, is read as another.
#include "supernet/json_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>

namespace verbatim {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string Place(const JsonNode& node) {
  return std::to_string(node.position.line) + ":" + std::to_string(node.position.column);
}

TEST(JsonReader, GivesPlacesToValuesAndKeys) {
  const auto root = ParseJson(
      "{\n  \"a\": [1, -2.5e3,\n    true, null],\n  \"é\\\"\": \"ü,\\\\\" , "
      "\"last\": {}}",
      "x");
  ASSERT_TRUE(root) << root.error().message;
  EXPECT_EQ(Place(*root), "1:1");
  const JsonNode& list = *root->Find("a");
  EXPECT_EQ(list.key_position.line, 2);
  EXPECT_EQ(list.key_position.column, 3);
  EXPECT_EQ(Place(list), "2:8");
  EXPECT_EQ(Place(list.children[0]), "2:9");
  EXPECT_EQ(Place(list.children[1]), "2:12");
  EXPECT_EQ(list.children[1].number, -2500.0);
  EXPECT_EQ(Place(list.children[2]), "3:5");
  EXPECT_EQ(Place(list.children[3]), "3:11");
  EXPECT_EQ(Place(*root->Find("é\"")), "4:10");
  EXPECT_EQ(root->Find("é\"")->text, "ü,\\");
  EXPECT_EQ(Place(*root->Find("last")), "4:27");
  EXPECT_EQ(root->Find("missing"), nullptr);
}

TEST(JsonReader, KeepsIntegersToTheirEnds) {
  const auto root =
      ParseJson("[18446744073709551615, -9223372036854775808, -0, 18446744073709551616]", "");
  ASSERT_TRUE(root);
  EXPECT_EQ(root->children[0].magnitude, 18446744073709551615u);
  EXPECT_EQ(root->children[1].magnitude, 9223372036854775808u);
  EXPECT_TRUE(root->children[1].negative);
  EXPECT_FALSE(root->children[2].negative);
  EXPECT_EQ(root->children[3].kind, JsonKind::kNumber);
}

TEST(JsonReader, PassesAByteOrderMark) {
  const auto root = ParseJson("\xEF\xBB\xBF{\"a\": 1}", "");
  ASSERT_TRUE(root);
  EXPECT_EQ(Place(*root->Find("a")), "1:7");
}

TEST(JsonReader, RefusesBadTextAndSaysWhere) {
  const struct {
    std::string text;
    const char* place;
    const char* what;
  } cases[] = {
      {"", "x:1:1: ", "unexpected end of input"},
      {"{\"a\": 1,\n  }", "x:2:3: ", "unexpected '}'"},
      {"{\"a\": 1\n  \"b\": 2}", "x:2:3: ", "unexpected string literal"},
      {"[1,,2]", "x:1:4: ", "unexpected ','"},
      {"[1] 2", "x:1:5: ", "unexpected number"},
      {"[1", "x:1:3: ", "unexpected end of input"},
      {"[nul]", "x:1:2: ", "invalid literal"},
      {"{a: 1}", "x:1:2: ", "invalid literal"},
      {"[NaN]", "x:1:2: ", "invalid literal"},
      {"[01]", "x:1:3: ", "unexpected number"},
      {"[1e999]", "x:1:2: ", "number overflow"},
      {"// comment\n1", "x:1:1: ", "invalid literal"},
      {"[\"\xff\"]", "x:1:2: ", "ill-formed UTF-8"},
      {"[\"\\ud800\"]", "x:1:2: ", "surrogate"},
      {"[\"a\nb\"]", "x:1:2: ", "control character"},
      {"{\"a\": 1,\n\"a\": 2}", "x:2:1: ", "\"a\" is given twice, first in line 1"},
      {std::string(65, '['), "x:1:65: ", "nested more than 64 deep"},
      {std::string(1000000, '['), "x:1:65: ", "nested more than 64 deep"},
  };
  for (const auto& c : cases) {
    const auto root = ParseJson(c.text, "x");
    ASSERT_FALSE(root) << c.text.substr(0, 40);
    EXPECT_EQ(root.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(root.error().message, StartsWith(c.place)) << c.text.substr(0, 40);
    EXPECT_THAT(root.error().message, HasSubstr(c.what)) << c.text.substr(0, 40);
  }
  EXPECT_TRUE(ParseJson(std::string(64, '[') + std::string(64, ']'), "x"));
}

std::string Example() {
  std::ifstream file(VERBATIM_EXAMPLES "/digits.json", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

TEST(JsonReader, CountsLinesFromWhereTheTextBegins) {
  EXPECT_EQ(ParseJson("\n7", "x", 5)->position.line, 6);
  const auto root = ParseJson("{\"a\" 1}", "x", 5);
  ASSERT_FALSE(root);
  EXPECT_THAT(root.error().message, StartsWith("x:5:6: "));
}

TEST(JsonReader, RefusesTheExampleCutAnywhere) {
  const std::string text = Example();
  const std::size_t end = text.rfind('}');
  ASSERT_TRUE(ParseJson(text, "x"));
  for (std::size_t size = 0; size <= end; ++size) {
    EXPECT_FALSE(ParseJson(std::string_view(text).substr(0, size), "x")) << size;
  }
}

TEST(JsonReader, SurvivesRandomChanges) {
  const char* given = std::getenv("VERBATIM_TEST_SEED");
  const unsigned seed = given != nullptr ? std::stoul(given) : 20241;
  SCOPED_TRACE("repeat with VERBATIM_TEST_SEED=" + std::to_string(seed));
  std::mt19937 random(seed);
  const std::string text = Example();
  for (int round = 0; round < 3000; ++round) {
    std::string changed = text;
    for (int i = 0; i < 3; ++i) changed[random() % changed.size()] = static_cast<char>(random());
    const auto root = ParseJson(changed, "x");
    if (!root) {
      EXPECT_THAT(root.error().message, StartsWith("x:"));
    }
  }
}

}  // namespace
}  // namespace verbatim
