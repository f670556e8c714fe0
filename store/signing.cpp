#include "store/signing.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/descriptor.h"
#include "base/hex.h"
#include "store/use_sodium.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

static_assert(sizeof(PublicKey::bytes) == crypto_sign_PUBLICKEYBYTES);
static_assert(sizeof(SecretKey::bytes) == crypto_sign_SECRETKEYBYTES);
static_assert(sizeof(Signature::bytes) == crypto_sign_BYTES);

constexpr std::string_view kSecretStart = "verbatim-secret-key 1 ";
constexpr std::string_view kPublicStart = "verbatim-public-key 1 ";
constexpr std::string_view kSecretName = "verbatim-secret-key ";
constexpr std::string_view kPublicName = "verbatim-public-key ";
constexpr std::size_t kKeyDigits = 64;
// Longer than any key's line; whatever else it holds is not looked at.
constexpr std::size_t kKeyFileBytesMax = 256;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

using Seed = std::array<std::uint8_t, crypto_sign_SEEDBYTES>;

SecretKey KeyOfSeed(const Seed& seed) {
  UseSodium();
  SecretKey key;
  PublicKey ignored;
  crypto_sign_seed_keypair(ignored.bytes.data(), key.bytes.data(), seed.data());
  return key;
}

/// A text that may hold a secret: wiped from memory when it goes, and never moved in it.
struct SecretText {
  std::array<char, kKeyFileBytesMax> bytes{};
  std::size_t size = 0;

  SecretText() = default;
  SecretText(const SecretText&) = delete;
  SecretText& operator=(const SecretText&) = delete;
  ~SecretText() { sodium_memzero(bytes.data(), bytes.size()); }

  void Add(std::string_view text) {
    VERBATIM_CHECK(size + text.size() <= bytes.size());
    std::memcpy(bytes.data() + size, text.data(), text.size());
    size += text.size();
  }
  void AddHex(std::span<const std::uint8_t> binary) {
    // With the terminator, which the line feed then replaces.
    VERBATIM_CHECK(size + 2 * binary.size() + 1 <= bytes.size());
    sodium_bin2hex(bytes.data() + size, bytes.size() - size, binary.data(), binary.size());
    size += 2 * binary.size();
  }
  std::string_view view() const { return {bytes.data(), size}; }
};

/// Zero or an errno.
int WriteWhole(Descriptor& file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file.number(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return fsync(file.number()) == 0 ? file.Close() : errno;
}

Status WriteKeyFile(std::string_view text, const fs::path& path, mode_t mode) {
  Descriptor file(open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, mode));
  if (file.number() < 0 && errno == EEXIST) {
    return UsageError(fmt::format("{} exists already", path.string()),
                      "Name another file: a key is never written over.");
  }
  const int error = file.number() < 0 ? errno : WriteWhole(file, text);
  if (error == 0) return {};
  if (file.number() >= 0) unlink(path.c_str());
  return Failed(fmt::format("{} cannot be written: {}", path.string(), std::strerror(error)),
                "Name a file in a folder that you may write to.");
}

/// What is wrong with its permissions, if anything.
std::optional<Error> PermissionProblem(const Descriptor& file, const fs::path& path) {
  struct stat info;
  if (fstat(file.number(), &info) != 0 || (info.st_mode & 077) == 0) return std::nullopt;
  return Error{ErrorKind::kBadInput,
               fmt::format("{}: the secret key is not secret: its mode is {:04o}", path.string(),
                           info.st_mode & 07777),
               fmt::format("Others may have read it. If not: chmod 600 {}", path.string())};
}

/// At most kKeyFileBytesMax bytes of the file.
Status ReadKeyFile(const Descriptor& file, const fs::path& path, SecretText& text) {
  int error = file.number() < 0 ? errno : 0;
  while (error == 0 && text.size < text.bytes.size()) {
    const ssize_t got =
        read(file.number(), text.bytes.data() + text.size, text.bytes.size() - text.size);
    if (got == 0) return {};
    if (got > 0) text.size += static_cast<std::size_t>(got);
    if (got < 0 && errno != EINTR) error = errno;
  }
  if (error == 0) return {};
  return BadInput(
      fmt::format("{}: the key cannot be read: {}", path.string(), std::strerror(error)),
      "verbatim keygen KEY makes a pair of keys.");
}

/// The hexadecimal digits of a line that starts so and holds nothing else.
std::optional<std::string_view> DigitsAfter(std::string_view start, std::string_view text) {
  if (!text.starts_with(start)) return std::nullopt;
  text.remove_prefix(start.size());
  if (text.ends_with('\n')) text.remove_suffix(1);
  return text.size() == kKeyDigits ? std::optional(text) : std::nullopt;
}

/// Why `text` holds no key of the kind `wanted`.
tl::unexpected<Error> NoKey(const fs::path& path, std::string_view wanted, std::string_view text) {
  const bool wants_secret = wanted == kSecretName;
  const std::string kind = wants_secret ? "secret" : "public";
  const std::string_view other = wants_secret ? kPublicName : kSecretName;
  if (text.starts_with(other)) {
    return BadInput(fmt::format("{} holds a {} key, where a {} one is needed", path.string(),
                                wants_secret ? "public" : "secret", kind),
                    wants_secret ? "A head is signed with the file without .pub."
                                 : "A signature is checked with the file KEY.pub.");
  }
  if (text.starts_with(wanted) && !text.substr(wanted.size()).starts_with("1 ")) {
    return BadInput(fmt::format("{}: a {} key of a version that this program does not read",
                                path.string(), kind),
                    "Use the program that made it, or a newer one.");
  }
  return BadInput(fmt::format("{} holds no {} key", path.string(), kind),
                  fmt::format("It must be one line: \"verbatim-{}-key 1\", a space and {} "
                              "hexadecimal digits, as verbatim keygen writes it.",
                              kind, kKeyDigits));
}

}  // namespace

std::string ToShortHex(const PublicKey& key) {
  return BytesToHex(key.bytes).substr(0, 8);
}

SecretKey::~SecretKey() {
  sodium_memzero(bytes.data(), bytes.size());
}

SecretKey GenerateKey() {
  UseSodium();
  Seed seed;
  randombytes_buf(seed.data(), seed.size());
  const SecretKey key = KeyOfSeed(seed);
  sodium_memzero(seed.data(), seed.size());
  return key;
}

PublicKey PublicKeyOf(const SecretKey& key) {
  PublicKey public_key;
  crypto_sign_ed25519_sk_to_pk(public_key.bytes.data(), key.bytes.data());
  return public_key;
}

Signature Sign(const SecretKey& key, std::string_view message) {
  UseSodium();
  Signature signature{PublicKeyOf(key)};
  crypto_sign_detached(signature.bytes.data(), nullptr, Bytes(message), message.size(),
                       key.bytes.data());
  return signature;
}

bool Verify(const Signature& signature, std::string_view message) {
  UseSodium();
  return crypto_sign_verify_detached(signature.bytes.data(), Bytes(message), message.size(),
                                     signature.key.bytes.data()) == 0;
}

Status WriteSecretKey(const SecretKey& key, const fs::path& path) {
  Seed seed;
  crypto_sign_ed25519_sk_to_seed(seed.data(), key.bytes.data());
  SecretText text;
  text.Add(kSecretStart);
  text.AddHex(seed);
  text.Add("\n");
  sodium_memzero(seed.data(), seed.size());
  return WriteKeyFile(text.view(), path, 0600);
}

Status WritePublicKey(const PublicKey& key, const fs::path& path) {
  return WriteKeyFile(fmt::format("{}{}\n", kPublicStart, BytesToHex(key.bytes)), path, 0644);
}

Result<SecretKey> ReadSecretKey(const fs::path& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  SecretText text;
  RETURN_IF_ERROR(ReadKeyFile(file, path, text));
  const auto digits = DigitsAfter(kSecretStart, text.view());
  Seed seed;
  if (!digits || !BytesFromHex(*digits, seed)) return NoKey(path, kSecretName, text.view());
  const SecretKey key = KeyOfSeed(seed);
  sodium_memzero(seed.data(), seed.size());
  if (auto problem = PermissionProblem(file, path)) return tl::unexpected(*std::move(problem));
  return key;
}

Result<PublicKey> ReadPublicKey(const fs::path& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  SecretText text;  // perhaps the secret key, by mistake
  RETURN_IF_ERROR(ReadKeyFile(file, path, text));
  const auto digits = DigitsAfter(kPublicStart, text.view());
  PublicKey key;
  if (!digits || !BytesFromHex(*digits, key.bytes)) return NoKey(path, kPublicName, text.view());
  return key;
}

}  // namespace verbatim
