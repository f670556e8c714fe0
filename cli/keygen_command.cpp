#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "base/hex.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "store/signing.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFooter =
    "Makes a pair of Ed25519 keys, by the operating system's generator: KEY, which signs heads "
    "and\n"
    "is for its owner's eyes only, and KEY.pub, with which anybody checks them. Existing files "
    "are\n"
    "never written over. Whoever has KEY can sign a forged record's head: keep it away from those\n"
    "who can write the record.\n"
    "\n"
    "Exit code 0: both are written; 2: one of them exists; 4: one cannot be written.\n"
    "\n"
    "Examples:\n"
    "  verbatim keygen run.key\n"
    "  verbatim train digits.json -o run.db --head-file /kept/run.head --sign run.key\n"
    "  verbatim verify run.db --head /kept/run.head --key run.key.pub";

Result<int> GenerateKeys(const fs::path& path) {
  const fs::path public_path = path.string() + ".pub";
  std::error_code error;
  if (fs::exists(fs::symlink_status(public_path, error))) {
    return UsageError(fmt::format("{} exists already", public_path.string()),
                      "Name another file: a key is never written over.");
  }
  const SecretKey key = GenerateKey();
  RETURN_IF_ERROR(WriteSecretKey(key, path));
  const PublicKey public_key = PublicKeyOf(key);
  if (Status written = WritePublicKey(public_key, public_path); !written) {
    fs::remove(path, error);  // a secret key alone is of no use to anybody but a thief
    return tl::unexpected(written.error());
  }
  RETURN_IF_ERROR(WriteToStdout(
      fmt::format("secret key  {}: signs heads; keep it to yourself\n"
                  "public key  {}: checks them; give it to whoever verifies\n"
                  "            {}\n",
                  path.string(), public_path.string(), BytesToHex(public_key.bytes))));
  return 0;
}

}  // namespace

void AddKeygenCommand(CLI::App& app, Invocation& invocation) {
  auto path = std::make_shared<fs::path>();
  CLI::App* command = app.add_subcommand("keygen", "Makes a pair of keys to sign heads with");
  command->footer(kFooter);
  command
      ->add_option("key", *path,
                   "The secret key to write; the public one is KEY.pub beside it. Example: run.key")
      ->required()
      ->type_name("KEY")
      ->check(NamedPath());
  command->callback(
      [path, &invocation] { invocation.action = [path] { return GenerateKeys(*path); }; });
}

}  // namespace verbatim
