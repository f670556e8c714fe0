// Ed25519 signatures (RFC 8032) by libsodium, and the files that hold keys (docs/format.md,
// "Keys").
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/status.h"

namespace verbatim {

struct PublicKey {
  std::array<std::uint8_t, 32> bytes{};
  bool operator==(const PublicKey&) const = default;
};
/// The first 8 hexadecimal digits, for people.
std::string ToShortHex(const PublicKey& key);

/// Wiped from memory when it goes.
struct SecretKey {
  std::array<std::uint8_t, 64> bytes{};

  SecretKey() = default;
  SecretKey(const SecretKey&) = default;
  SecretKey& operator=(const SecretKey&) = default;
  ~SecretKey();
};

struct Signature {
  PublicKey key;
  std::array<std::uint8_t, 64> bytes{};
  bool operator==(const Signature&) const = default;
};

/// By the operating system's generator.
SecretKey GenerateKey();
PublicKey PublicKeyOf(const SecretKey& key);
Signature Sign(const SecretKey& key, std::string_view message);
bool Verify(const Signature& signature, std::string_view message);

/// Files of one line of text each. The secret one is for its owner's eyes only (mode 0600). Safe on
/// disk once OK is returned. kUsage where the file exists already, kFailed where it cannot be
/// written; then no part of it is left.
Status WriteSecretKey(const SecretKey& key, const std::filesystem::path& path);
Status WritePublicKey(const PublicKey& key, const std::filesystem::path& path);
/// kBadInput where the file is missing, or holds something else; a secret key where a public one is
/// asked for is named as such, and the other way round. A secret key that its group or others may
/// read or write is refused too.
Result<SecretKey> ReadSecretKey(const std::filesystem::path& path);
Result<PublicKey> ReadPublicKey(const std::filesystem::path& path);

}  // namespace verbatim
