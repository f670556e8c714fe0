#include "base/hash256.h"

#include "base/hex.h"

namespace verbatim {

std::string ToHex(const Hash256& hash) {
  return BytesToHex(hash.bytes);
}

std::string ToShortHex(const Hash256& hash) {
  return ToHex(hash).substr(0, 8);
}

std::optional<Hash256> Hash256FromHex(std::string_view hex) {
  return ValueFromHex<Hash256>(hex);
}

}  // namespace verbatim
