#include "cli/json_text.h"

#include <fmt/format.h>

#include <cmath>

#include "verify/text.h"

namespace verbatim {

std::string ToJsonText(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json DigestJson(const std::optional<Digest>& digest) {
  return digest ? Json(ToHex(*digest)) : Json(nullptr);
}

Json LossJson(std::uint32_t loss_bits) {
  const float loss = LossFromBits(loss_bits);
  Json json;
  json["value"] = std::isfinite(loss) ? Json(loss) : Json(nullptr);
  json["bits"] = fmt::format("0x{:08x}", loss_bits);
  return json;
}

}  // namespace verbatim
