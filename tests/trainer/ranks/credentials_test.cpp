#include "trainer/ranks/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbatim {
namespace {

using ::testing::HasSubstr;

RunKey Key(const std::string& token = "0123456789abcdef", const std::string& run = "run") {
  return *RunKey::Make(token, run);
}

// Two programs of one version must derive the same, on any machine.
TEST(Credentials, AreTheseForThisTokenAndRun) {
  EXPECT_EQ(ToHex(Key().Seal("card", "text")),
            "cc84ad8f598aa0d2cd428358f8846b2b1280b48ae3bb81989a43dca410fdb8ba");
  EXPECT_EQ(Key().Password(1, 0),
            "f1b2702d235bddcb7b0ac8382c4a84db27c99d4d5f081068248f9f47e3cb38dd");
  EXPECT_EQ(Key().CurveKeysOf(2).secret_key, ">4Cg5vhrbWuZE$I/j]vgF2g.Xejt3L2yxN5Ed%ML");
  EXPECT_EQ(Key().CurveKeysOf(2).public_key, "py:r<V-:+tRb0lX!BZ[l6sxq=FcHkfsexg?hMYqh");
}

TEST(Credentials, DifferWithWhateverTheyAreDerivedFrom) {
  const RunKey key = Key();
  for (const RunKey& other : {Key("0123456789abcdeg"), Key("0123456789abcdef", "ruN")}) {
    EXPECT_NE(other.Seal("card", "text"), key.Seal("card", "text"));
    EXPECT_NE(other.Password(1, 0), key.Password(1, 0));
    EXPECT_NE(other.CurveKeysOf(2).secret_key, key.CurveKeysOf(2).secret_key);
  }
  EXPECT_NE(key.Seal("card", "text"), key.Seal("cards", "text"));
  EXPECT_NE(key.Seal("card", "text"), key.Seal("card", "texT"));
  EXPECT_NE(key.Seal("card", "text"), key.Seal("cardt", "ext"));
  EXPECT_NE(key.Password(1, 0), key.Password(0, 1));
  EXPECT_NE(key.CurveKeysOf(2).secret_key, key.CurveKeysOf(3).secret_key);
}

TEST(Credentials, KnowTheirOwnSealAlone) {
  const RunKey key = Key();
  Hash256 seal = key.Seal("card", "text");
  EXPECT_TRUE(key.IsSealed("card", "text", seal));
  EXPECT_FALSE(key.IsSealed("answer", "text", seal));
  EXPECT_FALSE(key.IsSealed("card", "texT", seal));
  for (std::uint8_t& byte : seal.bytes) {
    byte ^= 1;
    EXPECT_FALSE(key.IsSealed("card", "text", seal));
    byte ^= 1;
  }
}

TEST(Credentials, NeedATokenThatNobodyGuesses) {
  const auto key = RunKey::Make("0123456789abcde", "run");
  ASSERT_FALSE(key.has_value());
  EXPECT_EQ(key.error().kind, ErrorKind::kUsage);
  EXPECT_THAT(key.error().message, HasSubstr("15 bytes, and needs 16"));
  EXPECT_TRUE(RunKey::Make(std::string(100'000, 'x'), "").has_value());
}

TEST(Credentials, DrawAnotherTokenEachTime) {
  const std::string token = DrawToken();
  EXPECT_EQ(token.size(), 64u);
  EXPECT_EQ(token.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(token, DrawToken());
}

TEST(Credentials, CompareWholeSecrets) {
  EXPECT_TRUE(IsEqualSecret("", ""));
  EXPECT_TRUE(IsEqualSecret("abc", "abc"));
  EXPECT_FALSE(IsEqualSecret("abc", "abd"));
  EXPECT_FALSE(IsEqualSecret("abc", "ab"));
}

}  // namespace
}  // namespace verbatim
