// Proves that equal settings have equal text, and that a step's facts have one form, which alone is
// read.
#include "store/step_facts.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tests/store/sample_record.h"

namespace verbatim {
namespace {

using namespace test;  // NOLINT
using ::testing::HasSubstr;

TEST(Settings, HaveOneTextPerValue) {
  const std::pair<std::string, const char*> cases[] = {
      {SettingText("sgd"), R"("sgd")"},
      {SettingText("a\"b\\\n\x01ü"), R"("a\"b\\\n\u0001ü")"},
      {SettingText("\xff"), "\"\xEF\xBF\xBD\""},
      {SettingText(true), "true"},
      {SettingText(std::int64_t{-3}), "-3"},
      {SettingText(0.1), "0.1"},
      {SettingText(1.0), "1"},
      {SettingText(-0.0), "0"},
      {SettingText(100000.0), "100000"},
      {SettingText(1e-5), "1e-05"},
      {SettingText(1e19), "10000000000000000000"},
      {SettingText(-9223372036854775808.0), "-9223372036854775808"},
      {SettingText(1e22), "1e+22"},
      {SettingText(static_cast<double>(0.1f)), "0.10000000149011612"},
      {SettingText(std::nan("")), R"("NaN")"},
      {SettingText(-std::numeric_limits<double>::infinity()), R"("-Infinity")"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(text, expected);
}

TEST(Settings, AreReadFromAnyFormOfAnObject) {
  const auto settings =
      ParseSettings(R"( {"z": 1.0, "a": "x\u00fc", "lr": 1e-1, "b": false, "n": -0} )", "here");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(SettingsToJson(*settings), R"({"a":"xü","b":false,"lr":0.1,"n":0,"z":1})");
  EXPECT_EQ(ParseSettings(SettingsToJson(*settings), "here"), *settings);
}

TEST(Settings, RefuseWhatIsNoScalar) {
  const std::pair<const char*, const char*> cases[] = {
      {"[]", "here:1:1: expected an object"},
      {R"({"betas": [0.9]})", "here:1:11: betas: expected a string, a number or a boolean"},
      {R"({"a": null})", "a: expected"},
      {R"({"a": 1, "a": 2})", "here:1:"},
      {"{", "here:1:"},
  };
  for (const auto& [text, problem] : cases) {
    const auto settings = ParseSettings(text, "here");
    ASSERT_FALSE(settings) << text;
    EXPECT_EQ(settings.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(settings.error().message, HasSubstr(problem));
  }
}

TEST(StepFacts, HaveOneForm) {
  StepFacts facts;
  facts.step = 9;
  EXPECT_EQ(EncodeFacts(facts), "{}");
  facts.settings = {{"lr", "0.1"}, {"eval", R"("a b")"}};
  facts.outside = {0, 1048575};
  facts.parts = {SampleDigest(0)};
  facts.random_state = SampleDigest(16);
  const std::string text =
      R"({"outside":[0,1048575],"parts":["000102030405060708090a0b0c0d0e0f"],)"
      R"("random_state":"101112131415161718191a1b1c1d1e1f","settings":{"eval":"a b","lr":0.1}})";
  EXPECT_EQ(EncodeFacts(facts), text);
  StepFacts decoded;
  decoded.step = 9;
  decoded.outside = {5};
  EXPECT_EQ(DecodeFacts(text, &decoded), std::nullopt);
  EXPECT_EQ(decoded, facts);
}

TEST(StepFacts, OfAnotherFormAreRefused) {
  const char* const kCases[] = {
      "",
      "[]",
      "null",
      "{} ",
      R"({"outside":[]})",
      R"({"outside":[2,1]})",
      R"({"outside":[1,1]})",
      R"({"outside":[-1]})",
      R"({"outside":[1048576]})",
      R"({"outside":1})",
      R"({"parts":[]})",
      R"({"parts":["00"]})",
      R"({"parts":[7]})",
      R"({"random_state":"000102030405060708090A0B0C0D0E0F"})",
      R"({"random_state":null})",
      R"({"settings":{}})",
      R"({"settings":{"lr":0.10}})",
      R"({"settings":{"lr":[1]}})",
      R"({"settings":{"b":1,"a":1}})",
      R"({"settings":{"a":1},"outside":[1]})",
      R"({"step":1})",
  };
  for (const char* text : kCases) {
    StepFacts facts;
    EXPECT_NE(DecodeFacts(text, &facts), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace verbatim
