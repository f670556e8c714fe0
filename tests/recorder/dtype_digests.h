// The digest of one tensor of each element type: of shape (2, 3), its elements the bytes 0, 1, 2,
// …. Computed from docs/format.md by another program; python/tests/test_digests.py has the same.
#pragma once

#include <cstddef>

namespace verbatim {

struct DTypeDigest {
  const char* dtype;
  std::size_t element_bytes;
  const char* hex;
};

inline constexpr DTypeDigest kDTypeDigests[] = {
    {"float32", 4, "02192f48d5437fb970b79376458574e8"},
    {"float64", 8, "bc7802acf003d76ddab0e8bc85c86572"},
    {"float16", 2, "a3f35a29ce40b76a6e739c04a9f1b126"},
    {"bfloat16", 2, "fe339897c5afbe874749df315fa435a3"},
    {"int64", 8, "c97280aa48884e532702238b9b1710be"},
    {"int32", 4, "14b3ffdf8d342a714a4b777d419ab58c"},
    {"uint8", 1, "58f99cb413ef5ac5c38906094d30e440"},
    {"bool", 1, "1119a3c25bd250d9dca9cb08208311a9"},
    {"int8", 1, "670b052dae6ad806b0f18f4bc57c6f2e"},
    {"int16", 2, "c0810aa3bd1d3c45497e05971002d591"},
    {"uint16", 2, "7180b6565b8b24c10cbde59ad7c22a2d"},
    {"uint32", 4, "274b423d59949d273bc248a16ce90252"},
    {"uint64", 8, "ab94d5eea0eb68eb5cd17daf54bcabf0"},
    {"complex32", 4, "cfbc2ab3157ecf053ce6ed51647056f3"},
    {"complex64", 8, "df918d8b9ba44ecd86d570ff5d6c0a87"},
    {"complex128", 16, "c808c82ba648b3249fc47c02b2f08cdb"},
    {"float8_e4m3fn", 1, "9d4191f9604d7ac49efd2cd174948ccd"},
    {"float8_e5m2", 1, "a22d05bc4227d9db6cf34244a6965407"},
    {"float8_e4m3fnuz", 1, "78c1768cbe5dab66c7a89041bfe56e1f"},
    {"float8_e5m2fnuz", 1, "3c0e15f4462393267eb3642e47fc6a4f"},
    {"float8_e8m0fnu", 1, "8eeb1b7c266bf239f660198381fd7927"},
};

}  // namespace verbatim
