// Small JSON habits that the views of `verbatim show` share.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/digest.h"

namespace verbatim {

/// Keeps fields in the order in which they were set.
using Json = nlohmann::ordered_json;

/// Indented by two spaces, with an end of line; bytes that are no UTF-8 are replaced.
std::string ToJsonText(const Json& json);
/// 32 hexadecimal digits, or null.
Json DigestJson(const std::optional<Digest>& digest);
/// {"value": 2.25, "bits": "0x40100000"}; the value is null for NaN and infinities.
Json LossJson(std::uint32_t loss_bits);

}  // namespace verbatim
