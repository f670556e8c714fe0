// What ranks prove to each other, all of it derived from a token that they share: seals on what
// they leave in the store, a password or a key pair for each connection. The token itself is never
// sent.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/hash256.h"
#include "base/status.h"

namespace verbatim {

/// Shortest token: as many random bytes leave nothing to guess.
inline constexpr std::size_t kTokenBytesMin = 16;

/// A new token: 64 hexadecimal digits from the system's random numbers.
std::string DrawToken();

/// Of a curve25519 key pair, in Z85: 40 characters, as ZeroMQ takes them.
struct CurveKeys {
  std::string public_key;
  std::string secret_key;
};

/// The key of one run: a token, and the run's name, which no two runs share (a random number that
/// rank 0 draws), so that what was heard in one run opens no other. Everything else is a keyed
/// BLAKE2b-256 of it (docs/wire.md, "Keys"). A value, wiped from memory at its end.
class RunKey {
 public:
  /// kUsage where the token is shorter than kTokenBytesMin.
  static Result<RunKey> Make(std::string_view token, std::string_view run);
  ~RunKey();
  RunKey(const RunKey&) = default;
  RunKey& operator=(const RunKey&) = default;

  /// A seal on a text. `purpose` keeps seals of different things apart: "card 2", "answer".
  Hash256 Seal(std::string_view purpose, std::string_view text) const;
  /// Takes the same time wherever the seal is wrong.
  bool IsSealed(std::string_view purpose, std::string_view text, const Hash256& seal) const;

  /// What rank `from` says to rank `to`: 64 hexadecimal digits.
  std::string Password(int from, int to) const;
  /// Every rank can compute everybody's: the token is what they have in common.
  CurveKeys CurveKeysOf(int rank) const;

 private:
  RunKey() = default;

  Hash256 key_;
};

/// Equal, without saying by the time it takes where they differ.
bool IsEqualSecret(std::string_view a, std::string_view b);

}  // namespace verbatim
