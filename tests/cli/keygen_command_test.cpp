// Proves that `verbatim keygen` makes a pair that fits, and never writes over a file.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include "base/hex.h"
#include "store/signing.h"
#include "tests/cli/command_fixture.h"

namespace verbatim {
namespace {

using testing::HasSubstr;

using KeygenCommand = CommandTest;

TEST_F(KeygenCommand, MakesAPairThatFits) {
  const CommandResult result = Run({"keygen", Path("run.key")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto secret = ReadSecretKey(Path("run.key"));
  const auto public_key = ReadPublicKey(Path("run.key.pub"));
  ASSERT_TRUE(secret && public_key);
  EXPECT_EQ(PublicKeyOf(*secret), *public_key);
  EXPECT_THAT(result.out, HasSubstr(BytesToHex(public_key->bytes)));
  EXPECT_THAT(result.out, testing::Not(HasSubstr(ReadFile(Path("run.key")).substr(22, 64))));
  EXPECT_EQ(result.err, "");
  struct stat info;
  ASSERT_EQ(stat(Path("run.key").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
}

TEST_F(KeygenCommand, NeverWritesOverAFile) {
  WriteFile("a.key", "mine");
  WriteFile("b.key.pub", "mine");
  for (const char* name : {"a.key", "b.key"}) {
    const CommandResult result = Run({"keygen", Path(name)});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, HasSubstr("exists already"));
  }
  EXPECT_EQ(ReadFile(Path("a.key")), "mine");
  EXPECT_EQ(ReadFile(Path("b.key.pub")), "mine");
  EXPECT_FALSE(std::filesystem::exists(Path("a.key.pub")));
  EXPECT_FALSE(std::filesystem::exists(Path("b.key")));
}

TEST_F(KeygenCommand, SaysWhereItCannotWrite) {
  const CommandResult result = Run({"keygen", Path("none/run.key")});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.err, HasSubstr("none/run.key cannot be written: No such file"));
  EXPECT_EQ(Run({"keygen"}).exit_code, 2);
  EXPECT_EQ(Run({"keygen", ""}).exit_code, 2);
}

}  // namespace
}  // namespace verbatim
