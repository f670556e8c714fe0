// Proves the bytes that are signed, and that a file of heads is read strictly.
#include "store/head.h"

#include <gmock/gmock.h>

#include <random>

#include "store/merkle.h"
#include "tests/store/sample_head.h"
#include "tests/store/sample_record.h"

namespace verbatim {
namespace {

using test::SampleHash;
using test::SampleHead;
using testing::ElementsAre;
using testing::HasSubstr;

/// A line with one part replaced, which must be there.
std::string With(std::string line, const std::string& part, const std::string& other) {
  const std::size_t at = line.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  return line.replace(at, part.size(), other);
}

Head Signed(Head head, const SecretKey& key) {
  SignHead(key, head);
  return head;
}

TEST(Head, SignedBytesAreThoseOfTheFormat) {
  EXPECT_EQ(ToHex(Blake2b(EncodeHead(SampleHead()))),
            "6f3d2df299ecc22967a3bc6f186b300f77199152025d15ceb055e0b62329a31c");
  Head head = SampleHead();
  head.end.reset();
  EXPECT_EQ(ToHex(Blake2b(EncodeHead(head))),
            "ef1e60e6d0dcbf89ab47dbb87c2ae6a68b3e6a9b7b0de454ad2264a8abd82c0f");
  EXPECT_EQ(EncodeHead(head).size(), EncodeHead(SampleHead()).size() - 32);
  head.signature.emplace();
  EXPECT_EQ(ToHex(Blake2b(EncodeHead(head))),
            "ef1e60e6d0dcbf89ab47dbb87c2ae6a68b3e6a9b7b0de454ad2264a8abd82c0f");
}

TEST(Head, EveryFieldIsSigned) {
  const SecretKey key = GenerateKey();
  const Head sound = Signed(SampleHead(), key);
  EXPECT_TRUE(IsSignedBy(sound, PublicKeyOf(key)));
  std::vector<Head> changed(9, sound);
  changed[0].subnets += 1;
  changed[1].content_root.bytes[0] ^= 1;
  changed[2].layout_root.bytes[31] ^= 1;
  changed[3].start.bytes[7] ^= 1;
  changed[4].resumptions = 1;
  changed[5].circumstances.bytes[8] ^= 1;
  changed[6].end->bytes[9] ^= 1;
  changed[7].end.reset();
  changed[8].created_utc = "2026-01-31T12:00:01Z";
  for (const Head& head : changed) EXPECT_FALSE(IsSignedBy(head, PublicKeyOf(key)));
}

TEST(Head, SignatureIsOfOneKey) {
  const SecretKey key = GenerateKey();
  const SecretKey other = GenerateKey();
  EXPECT_FALSE(IsSignedBy(SampleHead(), PublicKeyOf(key)));
  EXPECT_FALSE(IsSignedBy(Signed(SampleHead(), other), PublicKeyOf(key)));
  Head renamed = Signed(SampleHead(), other);
  renamed.signature->key = PublicKeyOf(key);
  EXPECT_FALSE(IsSignedBy(renamed, PublicKeyOf(key)));
  Head twice = Signed(SampleHead(), other);
  SignHead(key, twice);
  EXPECT_TRUE(IsSignedBy(twice, PublicKeyOf(key)));
}

TEST(Head, LineIsThatOfTheFormat) {
  Head head = SampleHead(7);
  head.signature = Signature{};
  const std::string line = HeadToJson(head);
  EXPECT_THAT(line, testing::StartsWith(R"({"format":"verbatim-head","version":1,"subnets":7,)"
                                        R"("content_root":"0102030405)"));
  EXPECT_THAT(line, testing::EndsWith("\"}}\n"));
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
}

TEST(Head, SurvivesItsText) {
  const SecretKey key = GenerateKey();
  std::vector<Head> heads{SampleHead(0), SampleHead(), Signed(SampleHead(301), key)};
  heads[0].end.reset();
  std::string text;
  for (const Head& head : heads) text += HeadToJson(head);
  const auto read = ParseHeads(text, "run.head");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, heads);
  EXPECT_TRUE(IsSignedBy(read->back(), PublicKeyOf(key)));
}

TEST(Head, RefusesLinesThatAreNoHeadsAndSaysWhere) {
  const std::string line = HeadToJson(Signed(SampleHead(), GenerateKey()));
  const std::string root = ToHex(SampleHash(1));
  const struct {
    std::string second_line, message;
  } cases[] = {
      {"\n", "run.head:2:1: "},
      {"{}\n", "run.head:2:1: is no head"},
      {"[]\n", "run.head:2:1: is no head"},
      {"null\n", "run.head:2:1: is no head"},
      {line + line.substr(0, 40), "run.head:3: this line is cut short"},
      {line.substr(0, line.size() - 1), "run.head:2: this line is cut short"},
      {line.substr(0, 40) + "\n", "run.head:2:"},
      {With(line, "verbatim-head", "verbatim-proof"), "is no head"},
      {With(line, "\"version\":1", "\"version\":2"), "this head is of version 2"},
      {With(line, "\"version\":1", "\"version\":\"1\""), "version: expected an integer"},
      {With(line, "\"subnets\":300", "\"subnets\":-1"), "subnets: must be from 0 to"},
      {With(line, "\"subnets\":300", "\"subnets\":8796093022209"), "subnets: must be from 0 to"},
      {With(line, "\"subnets\":300", "\"subnets\":99999999999999999999999"), "64 bits"},
      {With(line, "\"subnets\":300", "\"subnets\":300.0"), "subnets: expected an integer"},
      {With(line, "\"subnets\":300", "\"subnets\":1e400"), "run.head:2:"},
      {With(line, "\"subnets\":300,", ""), "subnets: required, but missing"},
      {With(line, "\"resumptions\":2", "\"resumptions\":9999999999"), "resumptions: must be"},
      {With(line, root, root.substr(1)), "content_root: must be 64 lower-case hex"},
      {With(line, root, root + "0"), "content_root: must be 64 lower-case hex"},
      {With(line, "0a0b0c", "0A0B0C"), "content_root: must be 64 lower-case hex"},
      {With(line, "0a0b0c", "0g0b0c"), "content_root: must be 64 lower-case hex"},
      {With(line, "\"" + root + "\"", "7"), "content_root: expected a string"},
      {With(line, "\"end\":\"" + ToHex(SampleHash(5)) + "\"", "\"end\":null"), "end: expected a"},
      {With(line, "2026-01-31T", "2026-01-31 "), "created_utc: must be a time like"},
      {With(line, "12:00:00Z", "12:00:00"), "created_utc: must be a time like"},
      {With(line, "\"start\"", "\"begin\""), "begin: unknown field"},
      {With(line, "\"start\"", "\"end\""), "\"end\" is given twice"},
      {With(line, "ed25519", "rsa"), "signature.algorithm: must be ed25519"},
      {With(line, "\"bytes\":\"", "\"bytes\":\"00"), "signature.bytes: must be 128 lower-case"},
      {With(line, "\"key\":\"", "\"kex\":\""), "signature.kex: unknown field"},
      {With(line, "\n", " {}\n"), "run.head:2:"},
  };
  for (const auto& test : cases) {
    const auto read = ParseHeads(HeadToJson(SampleHead()) + test.second_line, "run.head");
    ASSERT_FALSE(read) << test.second_line;
    EXPECT_EQ(read.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(read.error().message, testing::StartsWith("run.head:"));
    EXPECT_THAT(read.error().message, HasSubstr(test.message));
  }
}

TEST(Head, FileHoldsAtLeastOne) {
  const auto read = ParseHeads("", "run.head");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "run.head holds no head");
}

TEST(Head, SaysThatTheFileCannotBeRead) {
  const test::TemporaryFolder folder;
  const auto read = ReadHeads(folder / "none");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, ErrorKind::kBadInput);
  EXPECT_THAT(read.error().message, HasSubstr("the file of heads cannot be read"));
}

class HeadFile : public testing::Test {
 protected:
  std::vector<std::int64_t> Sizes() const {
    std::vector<std::int64_t> sizes;
    const auto heads = ReadHeads(path_);
    EXPECT_TRUE(heads) << heads.error().message;
    for (const Head& head : *heads) sizes.push_back(head.subnets);
    return sizes;
  }

  const test::TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_ / "run.head";
};

TEST_F(HeadFile, GrowsByLines) {
  for (const std::int64_t size : {100, 200, 300}) ASSERT_TRUE(AppendHead(path_, SampleHead(size)));
  EXPECT_THAT(Sizes(), ElementsAre(100, 200, 300));
}

TEST_F(HeadFile, LineCutAnywhereMakesWayForTheNext) {
  const std::string whole = HeadToJson(SampleHead(100));
  const std::string line = HeadToJson(SampleHead(200));
  for (std::size_t size = 0; size + 1 < line.size(); size += 9) {
    test::WriteFile(path_, whole + line.substr(0, size));
    EXPECT_EQ(WholeHeads(whole + line.substr(0, size)), whole) << size;
    ASSERT_TRUE(AppendHead(path_, SampleHead(300)));
    EXPECT_THAT(Sizes(), ElementsAre(100, 300)) << size;
  }
  test::WriteFile(path_, whole + line.substr(0, line.size() - 1));  // only the line feed is missing
  EXPECT_EQ(WholeHeads(whole + line.substr(0, line.size() - 1)), whole + line);
  EXPECT_EQ(WholeHeads(whole + "no head"), whole + "no head") << "for ParseHeads to complain of";
  ASSERT_TRUE(AppendHead(path_, SampleHead(300)));
  EXPECT_THAT(Sizes(), ElementsAre(100, 200, 300));
  test::WriteFile(path_, line.substr(0, 50));
  ASSERT_TRUE(AppendHead(path_, SampleHead(300)));
  EXPECT_THAT(Sizes(), ElementsAre(300));
}

TEST_F(HeadFile, SaysWhereItCannotBeWritten) {
  const Status status = AppendHead(folder_ / "none" / "run.head", SampleHead());
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(status.error().message, HasSubstr("none/run.head"));
}

TEST(Head, SurvivesRandomChanges) {
  const char* given = std::getenv("VERBATIM_TEST_SEED");
  const std::uint64_t seed = given != nullptr ? std::stoull(given) : 20260131;
  SCOPED_TRACE("repeat with VERBATIM_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  const Head sound = Signed(SampleHead(), GenerateKey());
  const std::string line = HeadToJson(sound);
  for (int i = 0; i < 2000; ++i) {
    std::string changed = line;
    changed[random() % changed.size()] = static_cast<char>(random());
    const auto read = ParseHeads(changed, "x");
    // Whatever can still be read differs from the head, so that its signature fails.
    if (read && read->size() == 1 && changed != line) {
      EXPECT_FALSE(IsSignedBy(read->front(), sound.signature->key)) << changed;
    }
  }
}

}  // namespace
}  // namespace verbatim
