#include "base/digest.h"

#include "base/hex.h"

namespace verbatim {

std::string ToHex(const Digest& digest) {
  return BytesToHex(digest.bytes);
}

std::string ToShortHex(const Digest& digest) {
  return ToHex(digest).substr(0, 8);
}

std::optional<Digest> DigestFromHex(std::string_view hex) {
  return ValueFromHex<Digest>(hex);
}

}  // namespace verbatim
