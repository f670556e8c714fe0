// Proves that column values survive encoding, and that every other spelling is refused.
#include "store/values.h"

#include <gtest/gtest.h>

namespace verbatim {
namespace {

TEST(ValuesTest, ChoicesAreAJsonArray) {
  EXPECT_EQ(EncodeChoices({}), "[]");
  EXPECT_EQ(EncodeChoices(std::vector<std::uint16_t>{0, 3, 65535}), "[0,3,65535]");
}

TEST(ValuesTest, ChoicesRoundTrip) {
  for (const std::vector<std::uint16_t>& choices :
       {std::vector<std::uint16_t>{}, {0}, {65535}, {1, 2, 3}, {0, 0, 0}}) {
    EXPECT_EQ(DecodeChoices(EncodeChoices(choices)), choices);
  }
}

TEST(ValuesTest, OtherSpellingsOfChoicesAreRefused) {
  for (const char* text :
       {"",     "[",    "]",    "1",       "[1",    "1]",   "[1,]", "[,1]", "[1,,2]", "[1 ,2]",
        "[01]", "[-1]", "[+1]", "[65536]", "[1.0]", "[1]]", "[1];", "{1}",  "[1;2]",  "[a]"}) {
    EXPECT_EQ(DecodeChoices(text), std::nullopt) << text;
  }
}

TEST(ValuesTest, SamplesAreLittleEndian) {
  EXPECT_EQ(EncodeSamples(std::vector<std::uint32_t>{1, 0x01020304, 0xffffffff}),
            std::string("\x01\0\0\0\x04\x03\x02\x01\xff\xff\xff\xff", 12));
}

TEST(ValuesTest, SamplesRoundTrip) {
  for (const std::vector<std::uint32_t>& samples :
       {std::vector<std::uint32_t>{}, {0}, {0xffffffff, 1}, {0x80000000, 0x7f}}) {
    EXPECT_EQ(DecodeSamples(EncodeSamples(samples)), samples);
  }
}

TEST(ValuesTest, SamplesOfOddSizeAreRefused) {
  for (const std::size_t size : {1u, 2u, 3u, 5u}) {
    EXPECT_EQ(DecodeSamples(std::string(size, 'x')), std::nullopt) << size;
  }
}

TEST(ValuesTest, StatusesRoundTrip) {
  for (const RunStatus status :
       {RunStatus::kRunning, RunStatus::kComplete, RunStatus::kInterrupted, RunStatus::kFailed}) {
    EXPECT_EQ(RunStatusFromString(ToString(status)), status);
  }
  EXPECT_EQ(RunStatusFromString("done"), std::nullopt);
}

}  // namespace
}  // namespace verbatim
