// Proves that signatures are Ed25519's, and that key files hold keys, for their owner, and nothing
// else.
#include "store/signing.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hex.h"
#include "tests/store/sample_record.h"
#include "tests/temporary_folder.h"

namespace verbatim {
namespace {

using test::ReadFile;
using test::WriteFile;
using testing::HasSubstr;
using testing::MatchesRegex;

constexpr const char* kSeed = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb";
constexpr const char* kPublic = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";

class Signing : public testing::Test {
 protected:
  /// A key file with that text, which only its owner may read.
  std::filesystem::path KeyFile(const std::string& text) {
    const auto path = folder_ / "key";
    WriteFile(path, text);
    chmod(path.c_str(), 0600);
    return path;
  }

  const test::TemporaryFolder folder_;
};

mode_t ModeOf(const std::filesystem::path& path) {
  struct stat info;
  EXPECT_EQ(stat(path.c_str(), &info), 0);
  return info.st_mode & 07777;
}

TEST_F(Signing, SignsAsTheStandardSays) {
  // RFC 8032 section 7.1, test 2.
  const auto key = ReadSecretKey(KeyFile(std::string("verbatim-secret-key 1 ") + kSeed + "\n"));
  ASSERT_TRUE(key) << key.error().message;
  EXPECT_EQ(BytesToHex(PublicKeyOf(*key).bytes), kPublic);
  const Signature signature = Sign(*key, "\x72");
  EXPECT_EQ(BytesToHex(signature.bytes),
            "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
            "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00");
  EXPECT_TRUE(Verify(signature, "\x72"));
}

TEST_F(Signing, RefusesEveryChange) {
  const SecretKey key = GenerateKey();
  const std::string message = "subnets 0 to 99";
  const Signature signature = Sign(key, message);
  EXPECT_TRUE(Verify(signature, message));
  for (std::size_t bit = 0; bit < message.size() * 8; ++bit) {
    std::string changed = message;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(Verify(signature, changed)) << bit;
  }
  for (std::size_t bit = 0; bit < signature.bytes.size() * 8; ++bit) {
    Signature changed = signature;
    changed.bytes[bit / 8] = static_cast<std::uint8_t>(changed.bytes[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(Verify(changed, message)) << bit;
  }
  EXPECT_FALSE(Verify(signature, message + " "));
  EXPECT_FALSE(Verify(signature, ""));
  EXPECT_FALSE(Verify({PublicKeyOf(GenerateKey()), signature.bytes}, message));
  EXPECT_FALSE(Verify({PublicKey{}, signature.bytes}, message));
  EXPECT_FALSE(Verify({}, message));
}

TEST_F(Signing, EveryKeyIsAnother) {
  EXPECT_NE(PublicKeyOf(GenerateKey()), PublicKeyOf(GenerateKey()));
}

TEST_F(Signing, KeysSurviveTheirFiles) {
  const SecretKey key = GenerateKey();
  ASSERT_TRUE(WriteSecretKey(key, folder_ / "key"));
  ASSERT_TRUE(WritePublicKey(PublicKeyOf(key), folder_ / "key.pub"));
  EXPECT_THAT(ReadFile(folder_ / "key"), MatchesRegex("verbatim-secret-key 1 [0-9a-f]{64}\n"));
  EXPECT_EQ(ReadFile(folder_ / "key.pub"),
            "verbatim-public-key 1 " + BytesToHex(PublicKeyOf(key).bytes) + "\n");
  EXPECT_EQ(ReadSecretKey(folder_ / "key")->bytes, key.bytes);
  EXPECT_EQ(*ReadPublicKey(folder_ / "key.pub"), PublicKeyOf(key));
}

TEST_F(Signing, OnlyTheOwnerMayReadASecretKey) {
  const mode_t before = umask(0);
  EXPECT_TRUE(WriteSecretKey(GenerateKey(), folder_ / "key"));
  umask(before);
  EXPECT_EQ(ModeOf(folder_ / "key"), 0600u);
  for (const mode_t mode : {0640, 0604, 0620, 0644, 0666}) {
    chmod((folder_ / "key").c_str(), mode);
    const auto key = ReadSecretKey(folder_ / "key");
    ASSERT_FALSE(key) << mode;
    EXPECT_EQ(key.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(key.error().message, HasSubstr("is not secret"));
    EXPECT_THAT(key.error().hint, HasSubstr("chmod 600 " + (folder_ / "key").string()));
  }
  chmod((folder_ / "key").c_str(), 0400);
  EXPECT_TRUE(ReadSecretKey(folder_ / "key"));
}

TEST_F(Signing, NeverWritesOverAFile) {
  const SecretKey key = GenerateKey();
  WriteFile(folder_ / "file", "mine");
  std::filesystem::create_symlink(folder_ / "elsewhere", folder_ / "link");
  for (const char* name : {"file", "link"}) {
    for (const Status& status :
         {WriteSecretKey(key, folder_ / name), WritePublicKey(PublicKeyOf(key), folder_ / name)}) {
      ASSERT_FALSE(status);
      EXPECT_EQ(status.error().kind, ErrorKind::kUsage);
      EXPECT_THAT(status.error().message, HasSubstr("exists already"));
    }
  }
  EXPECT_EQ(ReadFile(folder_ / "file"), "mine");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "elsewhere"));
}

TEST_F(Signing, SaysWhereAKeyCannotBeWritten) {
  const Status status = WriteSecretKey(GenerateKey(), folder_ / "none" / "key");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(status.error().message, HasSubstr("none/key cannot be written: No such file"));
}

TEST_F(Signing, NamesAKeyOfTheOtherKind) {
  const SecretKey key = GenerateKey();
  ASSERT_TRUE(WriteSecretKey(key, folder_ / "key"));
  ASSERT_TRUE(WritePublicKey(PublicKeyOf(key), folder_ / "key.pub"));
  const auto as_secret = ReadSecretKey(folder_ / "key.pub");
  ASSERT_FALSE(as_secret);
  EXPECT_THAT(as_secret.error().message, HasSubstr("holds a public key, where a secret one"));
  const auto as_public = ReadPublicKey(folder_ / "key");
  ASSERT_FALSE(as_public);
  EXPECT_THAT(as_public.error().message, HasSubstr("holds a secret key, where a public one"));
  // The secret stays one.
  EXPECT_THAT(as_public.error().message + as_public.error().hint,
              testing::Not(HasSubstr(ReadFile(folder_ / "key").substr(22, 64))));
}

TEST_F(Signing, RefusesWhatIsNoKey) {
  const std::string start = "verbatim-secret-key 1 ";
  const std::string line = start + kSeed;
  EXPECT_TRUE(ReadSecretKey(KeyFile(line)));
  for (const std::string& text :
       {std::string(), std::string("\n"), line.substr(0, line.size() - 1), line + "0",
        line + "\n\n", line + "\n" + line + "\n", line + "\r\n", " " + line,
        start + std::string(64, 'g'), start + std::string(63, '0') + " ", std::string(1000, '0'),
        std::string("-----BEGIN OPENSSH PRIVATE KEY-----\n"), line + std::string(1, '\0')}) {
    const auto key = ReadSecretKey(KeyFile(text));
    ASSERT_FALSE(key) << text;
    EXPECT_EQ(key.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(key.error().message, HasSubstr("holds no secret key")) << text;
  }
  const auto newer = ReadSecretKey(KeyFile("verbatim-secret-key 2 00"));
  ASSERT_FALSE(newer);
  EXPECT_THAT(newer.error().message, HasSubstr("of a version that this program does not read"));
}

TEST_F(Signing, SaysThatAFileIsMissingOrAFolder) {
  for (const auto& path : {folder_ / "none", folder_.path()}) {
    const auto key = ReadPublicKey(path);
    ASSERT_FALSE(key);
    EXPECT_EQ(key.error().kind, ErrorKind::kBadInput);
    EXPECT_THAT(key.error().message, HasSubstr(path.string() + ": the key cannot be read: "));
    EXPECT_FALSE(ReadSecretKey(path));
  }
}

}  // namespace
}  // namespace verbatim
