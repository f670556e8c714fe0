// Proves which bytes of a file are which sample's inputs and labels, and what is refused.
#include "trainer/data/text.h"

#include <gmock/gmock.h>

#include "recorder/digest.h"
#include "tests/trainer/data/data_testing.h"

namespace verbatim {
namespace {

std::string ToString(std::span<const std::uint8_t> bytes) {
  return std::string(bytes.begin(), bytes.end());
}

class TextTest : public DataTest {};

TEST_F(TextTest, CutsTheBytesIntoSamples) {
  Write("t", "abcdefghijk");
  const auto text = LoadText(folder_, "t", 3, 0);
  ASSERT_TRUE(text.has_value()) << text.error().message;
  ASSERT_EQ(text->size(), 3);
  EXPECT_EQ(ToString(text->Inputs(0)), "abc");
  EXPECT_EQ(ToString(text->Labels(0)), "bcd");
  EXPECT_EQ(ToString(text->Inputs(2)), "ghi");
  EXPECT_EQ(ToString(text->Labels(2)), "hij");
}

TEST_F(TextTest, PredictsAfterTheSource) {
  Write("t", "abcdefghijk");
  const auto text = LoadText(folder_, "t", 5, 3);
  ASSERT_TRUE(text.has_value()) << text.error().message;
  ASSERT_EQ(text->size(), 2);
  EXPECT_EQ(text->targets(), 2);
  EXPECT_EQ(ToString(text->Inputs(1)), "fghij");
  EXPECT_EQ(ToString(text->Labels(1)), "jk");
}

/// A sample needs the byte after it, so N = floor((size - 1) / length).
TEST_F(TextTest, TheLastSampleNeedsOneByteMore) {
  for (const auto& [size, samples] : {std::pair{4, 1}, {6, 1}, {7, 2}, {9, 2}, {10, 3}}) {
    Write("t", std::string(size, 'x'));
    EXPECT_EQ(LoadText(folder_, "t", 3, 0)->size(), samples) << size;
  }
}

TEST_F(TextTest, EveryByteIsKept) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  Write("t", "\0\0\r\n"s + all);
  const auto text = LoadText(folder_, "t", 8, 0);
  ASSERT_TRUE(text.has_value()) << text.error().message;
  EXPECT_EQ(ToString(text->bytes), "\0\0\r\n"s + all);
}

TEST_F(TextTest, ReadsGzipUnderEitherName) {
  const std::string content(3'000'000, 'y');  // more than is read at once
  Write("t.gz", Gzip(content));
  const auto by_suffix = LoadText(folder_, "t", 100, 0);
  ASSERT_TRUE(by_suffix.has_value()) << by_suffix.error().message;
  EXPECT_EQ(ToString(by_suffix->bytes), content);
  Write("t", Gzip("other text"));
  EXPECT_EQ(ToString(LoadText(folder_, "t", 4, 0)->bytes), "other text");
}

TEST_F(TextTest, RefusesWhatHoldsNoSample) {
  Write("empty", "");
  ExpectBadInput(LoadText(folder_, "empty", 4, 0),
                 "0 bytes, but one sample of data.length 4 takes 5", "empty");
  Write("short", "abcd");
  ExpectBadInput(LoadText(folder_, "short", 4, 0), "4 bytes, but one sample", "short");
  EXPECT_TRUE(LoadText(folder_, "short", 3, 0).has_value());
}

TEST_F(TextTest, RefusesMoreThanTheLimit) {
  Write("t", std::string(1001, 'x'));
  ExpectBadInput(LoadText(folder_, "t", 4, 0, 1000), "more than 1000 bytes", "t");
  EXPECT_TRUE(LoadText(folder_, "t", 4, 0, 1001).has_value());
  Write("packed", Gzip(std::string(5'000'000, 'x')));
  ExpectBadInput(LoadText(folder_, "packed", 4, 0, 2'000'000), "more than 2000000 bytes", "packed");
}

TEST_F(TextTest, RefusesWhatIsNotThere) {
  ExpectBadInput(LoadText(folder_, "t", 4, 0), "no file t or t.gz in the data folder");
  ExpectBadInput(LoadText(folder_ / "nowhere", "t", 4, 0), "does not exist");
}

/// The digest is what an independent Python program with its own xxHash computes.
TEST_F(TextTest, TheShippedTextIsTheOneThatItsPageDescribes) {
  const auto text = LoadText(VERBATIM_TEXT_FOLDER, "corpus.txt", 64, 0);
  ASSERT_TRUE(text.has_value()) << text.error().message;
  EXPECT_EQ(text->bytes.size(), 209984u);
  EXPECT_EQ(ToString(text->Inputs(0)).substr(0, 40), "It is raining. Rosa walks to the old mil");
  EXPECT_EQ(ToHex(DigestText(*text)), "291458acaec2198630cd26a10f0fdd92");
}

TEST_F(TextTest, DigestSeesEveryByte) {
  Write("t", "abcdefgh");
  auto text = LoadText(folder_, "t", 3, 0);
  const Digest whole = DigestText(*text);
  text->bytes.back() = 'H';
  EXPECT_NE(DigestText(*text), whole);
}

}  // namespace
}  // namespace verbatim
