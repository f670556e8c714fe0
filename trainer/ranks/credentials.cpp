#include "trainer/ranks/credentials.h"

#include <fmt/format.h>
#include <zmq.h>

#include <array>

#include "base/check.h"
#include "base/encoding.h"
#include "base/hex.h"
#include "store/use_sodium.h"

namespace verbatim {
namespace {

static_assert(sizeof(Hash256::bytes) >= crypto_generichash_KEYBYTES_MIN);
static_assert(sizeof(Hash256::bytes) <= crypto_generichash_KEYBYTES_MAX);

constexpr std::size_t kZ85KeySize = 40;

/// BLAKE2b-256 of `text`, keyed where `key` is given.
Hash256 Keyed(const Hash256* key, std::string_view text) {
  UseSodium();
  Hash256 hash;
  crypto_generichash(hash.bytes.data(), hash.bytes.size(),
                     reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                     key == nullptr ? nullptr : key->bytes.data(),
                     key == nullptr ? 0 : key->bytes.size());
  return hash;
}

void Wipe(Hash256& hash) {
  sodium_memzero(hash.bytes.data(), hash.bytes.size());
}

}  // namespace

std::string DrawToken() {
  UseSodium();
  Hash256 random;
  randombytes_buf(random.bytes.data(), random.bytes.size());
  std::string token = ToHex(random);
  Wipe(random);
  return token;
}

Result<RunKey> RunKey::Make(std::string_view token, std::string_view run) {
  if (token.size() < kTokenBytesMin) {
    return UsageError(fmt::format("the token of the run has {} bytes, and needs {}", token.size(),
                                  kTokenBytesMin),
                      "Draw one for each run and give it to all ranks: openssl rand -hex 32");
  }
  Hash256 of_token = Keyed(nullptr, token);
  RunKey key;
  key.key_ = Keyed(&of_token, Encoder().String("verbatim.ranks.run.1").String(run).bytes());
  Wipe(of_token);
  return key;
}

RunKey::~RunKey() {
  Wipe(key_);
}

Hash256 RunKey::Seal(std::string_view purpose, std::string_view text) const {
  Encoder out;
  out.String("verbatim.ranks.seal.1").String(purpose).Bytes(text.data(), text.size());
  return Keyed(&key_, out.bytes());
}

bool RunKey::IsSealed(std::string_view purpose, std::string_view text, const Hash256& seal) const {
  const Hash256 expected = Seal(purpose, text);
  return sodium_memcmp(expected.bytes.data(), seal.bytes.data(), seal.bytes.size()) == 0;
}

std::string RunKey::Password(int from, int to) const {
  Encoder out;
  out.String("verbatim.ranks.password.1");
  out.U32(static_cast<std::uint32_t>(from)).U32(static_cast<std::uint32_t>(to));
  return ToHex(Keyed(&key_, out.bytes()));
}

CurveKeys RunKey::CurveKeysOf(int rank) const {
  Encoder out;
  out.String("verbatim.ranks.curve.1").U32(static_cast<std::uint32_t>(rank));
  Hash256 secret = Keyed(&key_, out.bytes());
  std::array<char, kZ85KeySize + 1> secret_text{};
  std::array<char, kZ85KeySize + 1> public_text{};
  VERBATIM_CHECK(zmq_z85_encode(secret_text.data(), secret.bytes.data(), secret.bytes.size()));
  VERBATIM_CHECK(zmq_curve_public(public_text.data(), secret_text.data()) == 0,
                 "this libzmq has no CURVE");
  CurveKeys keys{public_text.data(), secret_text.data()};
  Wipe(secret);
  sodium_memzero(secret_text.data(), secret_text.size());
  return keys;
}

bool IsEqualSecret(std::string_view a, std::string_view b) {
  UseSodium();
  return a.size() == b.size() && sodium_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace verbatim
