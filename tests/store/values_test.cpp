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
    std::vector<std::uint16_t> decoded{9};
    EXPECT_TRUE(DecodeChoices(EncodeChoices(choices), decoded));
    EXPECT_EQ(decoded, choices);
  }
}

TEST(ValuesTest, OtherSpellingsOfChoicesAreRefused) {
  for (const char* text : {"",       "[",      "]",    "1",    "[1",     "1]",   "[1,]", "[,1]",
                           "[1,,2]", "[1 ,2]", "[01]", "[00]", "[1,02]", "[-1]", "[+1]", "[65536]",
                           "[1.0]",  "[1]]",   "[1];", "{1}",  "[1;2]",  "[a]"}) {
    std::vector<std::uint16_t> decoded;
    EXPECT_FALSE(DecodeChoices(text, decoded)) << text;
  }
}

TEST(ValuesTest, SamplesAreLittleEndian) {
  EXPECT_EQ(EncodeSamples(std::vector<std::uint32_t>{1, 0x01020304, 0xffffffff}),
            std::string("\x01\0\0\0\x04\x03\x02\x01\xff\xff\xff\xff", 12));
}

TEST(ValuesTest, SamplesRoundTrip) {
  for (const std::vector<std::uint32_t>& samples :
       {std::vector<std::uint32_t>{}, {0}, {0xffffffff, 1}, {0x80000000, 0x7f}}) {
    std::vector<std::uint32_t> decoded{9};
    EXPECT_TRUE(DecodeSamples(EncodeSamples(samples), decoded));
    EXPECT_EQ(decoded, samples);
  }
}

TEST(ValuesTest, SamplesOfOddSizeAreRefused) {
  for (const std::size_t size : {1u, 2u, 3u, 5u}) {
    std::vector<std::uint32_t> decoded;
    EXPECT_FALSE(DecodeSamples(std::string(size, 'x'), decoded)) << size;
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
