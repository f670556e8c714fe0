// XXH3-128 with seed 0 and the default secret, as arithmetic that a CUDA kernel can run too.
//
// Source: "xxHash fast digest algorithm", specification v0.2.0, XXH3 sections
// (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md). On the CPU use DigestBytes
// (recorder/digest.h), which is many times faster; this one exists to give equal bits on a device.
//
// Inputs above 240 bytes ("long") are cut into 1024-byte blocks of sixteen 64-byte stripes of eight
// 64-bit lanes. Within a block a lane only adds, in any order; between blocks it scrambles. So
// LaneBlockSum may run for all lanes and blocks at once, and LaneAbsorb then walks the blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/host_device.h"

namespace verbatim::xxh3 {

constexpr std::uint64_t kPrime32_1 = 0x9E3779B1u;
constexpr std::uint64_t kPrime32_2 = 0x85EBCA77u;
constexpr std::uint64_t kPrime32_3 = 0xC2B2AE3Du;
constexpr std::uint64_t kPrime64_1 = 0x9E3779B185EBCA87u;
constexpr std::uint64_t kPrime64_2 = 0xC2B2AE3D27D4EB4Fu;
constexpr std::uint64_t kPrime64_3 = 0x165667B19E3779F9u;
constexpr std::uint64_t kPrime64_4 = 0x85EBCA77C2B2AE63u;
constexpr std::uint64_t kPrime64_5 = 0x27D4EB2F165667C5u;
constexpr std::uint64_t kPrimeMx1 = 0x165667919E3779F9u;
constexpr std::uint64_t kPrimeMx2 = 0x9FB21C651E98DF25u;

constexpr std::size_t kShortBytesMax = 240;
constexpr std::size_t kBlockBytes = 1024;
constexpr std::size_t kStripeBytes = 64;
constexpr int kLanes = 8;

/// The default secret, 192 bytes, as little-endian words.
struct Secret {
  std::uint64_t word[24];
};

VERBATIM_HOST_DEVICE constexpr Secret DefaultSecret() {
  return Secret{{
      0xbe4ba423396cfeb8, 0x1cad21f72c81017c, 0xdb979083e96dd4de, 0x1f67b3b7a4a44072,
      0x78e5c0cc4ee679cb, 0x2172ffcc7dd05a82, 0x8e2443f7744608b8, 0x4c263a81e69035e0,
      0xcb00c391bb52283c, 0xa32e531b8b65d088, 0x4ef90da297486471, 0xd8acdea946ef1938,
      0x3f349ce33f76faa8, 0x1d4f0bc7c7bbdcf9, 0x3159b4cd4be0518a, 0x647378d9c97e9fc8,
      0xc3ebd33483acc5ea, 0xeb6313faffa081c5, 0x49daf0b751dd0d17, 0x9e68d429265516d3,
      0xfca1477d58be162b, 0xce31d07ad1b8f88f, 0x280416958f3acb45, 0x7e404bbbcafbd7af,
  }};
}

/// A 128-bit hash as the specification's two halves.
struct Hash {
  std::uint64_t low;
  std::uint64_t high;
};

/// The canonical form: big-endian, the higher half first. `out` has room for 16 bytes.
VERBATIM_HOST_DEVICE inline void PutCanonical(Hash hash, std::uint8_t* out) {
  for (int i = 0; i < 8; ++i) {
    out[i] = static_cast<std::uint8_t>(hash.high >> (56 - 8 * i));
    out[8 + i] = static_cast<std::uint8_t>(hash.low >> (56 - 8 * i));
  }
}

// ---- Words

VERBATIM_HOST_DEVICE inline std::uint32_t Read32(const std::uint8_t* data) {
  return static_cast<std::uint32_t>(data[0]) | static_cast<std::uint32_t>(data[1]) << 8 |
         static_cast<std::uint32_t>(data[2]) << 16 | static_cast<std::uint32_t>(data[3]) << 24;
}

/// Eight little-endian bytes at any alignment.
VERBATIM_HOST_DEVICE inline std::uint64_t Read64(const std::uint8_t* data) {
#ifdef __CUDA_ARCH__
  // A device load faults unless it is aligned, and eight loads of a byte are slow.
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  if (address % 8 == 0) return *reinterpret_cast<const std::uint64_t*>(data);
  if (address % 4 == 0) {
    const auto* half = reinterpret_cast<const std::uint32_t*>(data);
    return half[0] | static_cast<std::uint64_t>(half[1]) << 32;
  }
#endif
  return Read32(data) | static_cast<std::uint64_t>(Read32(data + 4)) << 32;
}

/// Eight secret bytes from byte `offset`, 0 <= offset <= 184.
VERBATIM_HOST_DEVICE inline std::uint64_t SecretAt(const Secret& secret, int offset) {
  const int word = offset / 8;
  const int shift = 8 * (offset % 8);
  if (shift == 0) return secret.word[word];
  return secret.word[word] >> shift | secret.word[word + 1] << (64 - shift);
}

VERBATIM_HOST_DEVICE inline std::uint32_t SwapBytes32(std::uint32_t x) {
  return x << 24 | (x & 0xff00u) << 8 | (x >> 8 & 0xff00u) | x >> 24;
}

VERBATIM_HOST_DEVICE inline std::uint64_t SwapBytes64(std::uint64_t x) {
  return static_cast<std::uint64_t>(SwapBytes32(static_cast<std::uint32_t>(x))) << 32 |
         SwapBytes32(static_cast<std::uint32_t>(x >> 32));
}

VERBATIM_HOST_DEVICE inline std::uint64_t MultiplyHigh(std::uint64_t a, std::uint64_t b) {
#ifdef __CUDA_ARCH__
  return __umul64hi(a, b);
#else
  __extension__ using Product = unsigned __int128;
  return static_cast<std::uint64_t>(static_cast<Product>(a) * b >> 64);
#endif
}

/// The two halves of the 128-bit product, xored.
VERBATIM_HOST_DEVICE inline std::uint64_t MultiplyFold(std::uint64_t a, std::uint64_t b) {
  return a * b ^ MultiplyHigh(a, b);
}

VERBATIM_HOST_DEVICE inline std::uint64_t Avalanche(std::uint64_t x) {
  x = (x ^ x >> 37) * kPrimeMx1;
  return x ^ x >> 32;
}

VERBATIM_HOST_DEVICE inline std::uint64_t AvalancheXxh64(std::uint64_t x) {
  x = (x ^ x >> 33) * kPrime64_2;
  x = (x ^ x >> 29) * kPrime64_3;
  return x ^ x >> 32;
}

// ---- Up to 240 bytes

VERBATIM_HOST_DEVICE inline Hash HashEmpty(const Secret& secret) {
  return Hash{AvalancheXxh64(secret.word[8] ^ secret.word[9]),
              AvalancheXxh64(secret.word[10] ^ secret.word[11])};
}

VERBATIM_HOST_DEVICE inline Hash Hash1To3(const std::uint8_t* data, std::uint32_t size,
                                          const Secret& secret) {
  const std::uint32_t combined = data[size - 1] | size << 8 |
                                 static_cast<std::uint32_t>(data[0]) << 16 |
                                 static_cast<std::uint32_t>(data[size / 2]) << 24;
  const std::uint32_t swapped = SwapBytes32(combined);
  const std::uint64_t folded0 = (secret.word[0] ^ secret.word[0] >> 32) & 0xffffffffu;
  const std::uint64_t folded1 = (secret.word[1] ^ secret.word[1] >> 32) & 0xffffffffu;
  return Hash{AvalancheXxh64(folded0 ^ combined),
              AvalancheXxh64(folded1 ^ (swapped << 13 | swapped >> 19))};
}

VERBATIM_HOST_DEVICE inline Hash Hash4To8(const std::uint8_t* data, std::uint64_t size,
                                          const Secret& secret) {
  const std::uint64_t combined = Read32(data) | static_cast<std::uint64_t>(Read32(data + size - 4))
                                                    << 32;
  const std::uint64_t value = secret.word[2] ^ secret.word[3] ^ combined;
  const std::uint64_t factor = kPrime64_1 + (size << 2);
  std::uint64_t low = value * factor;
  const std::uint64_t high = MultiplyHigh(value, factor) + (low << 1);
  low ^= high >> 3;
  low = (low ^ low >> 35) * kPrimeMx2;
  return Hash{low ^ low >> 28, Avalanche(high)};
}

VERBATIM_HOST_DEVICE inline Hash Hash9To16(const std::uint8_t* data, std::uint64_t size,
                                           const Secret& secret) {
  const std::uint64_t first = Read64(data);
  const std::uint64_t last = Read64(data + size - 8);
  const std::uint64_t value1 = secret.word[4] ^ secret.word[5] ^ first ^ last;
  const std::uint64_t value2 = secret.word[6] ^ secret.word[7] ^ last;
  const std::uint64_t high =
      MultiplyHigh(value1, kPrime64_1) + value2 + (value2 & 0xffffffffu) * (kPrime32_2 - 1);
  const std::uint64_t low = (value1 * kPrime64_1 + ((size - 1) << 54)) ^ SwapBytes64(high);
  return Hash{Avalanche(low * kPrime64_2),
              Avalanche(MultiplyHigh(low, kPrime64_2) + high * kPrime64_2)};
}

/// The specification's two accumulators for 17 to 240 bytes.
struct Pair {
  std::uint64_t acc[2];
};

/// Mixes 16 bytes at `data0` and 16 at `data1` with 32 secret bytes from `offset`.
VERBATIM_HOST_DEVICE inline void MixPair(Pair& pair, const std::uint8_t* data0,
                                         const std::uint8_t* data1, const Secret& secret,
                                         int offset) {
  const std::uint64_t a0 = Read64(data0), a1 = Read64(data0 + 8);
  const std::uint64_t b0 = Read64(data1), b1 = Read64(data1 + 8);
  pair.acc[0] += MultiplyFold(a0 ^ SecretAt(secret, offset), a1 ^ SecretAt(secret, offset + 8));
  pair.acc[1] +=
      MultiplyFold(b0 ^ SecretAt(secret, offset + 16), b1 ^ SecretAt(secret, offset + 24));
  pair.acc[0] ^= b0 + b1;
  pair.acc[1] ^= a0 + a1;
}

VERBATIM_HOST_DEVICE inline void Mix17To128(Pair& pair, const std::uint8_t* data, std::size_t size,
                                            const Secret& secret) {
  for (int i = static_cast<int>((size - 1) / 32); i >= 0; --i) {
    MixPair(pair, data + 16 * i, data + size - 16 * i - 16, secret, 32 * i);
  }
}

VERBATIM_HOST_DEVICE inline void Mix129To240(Pair& pair, const std::uint8_t* data, std::size_t size,
                                             const Secret& secret) {
  const int pairs = static_cast<int>(size / 32);
  for (int i = 0; i < pairs; ++i) {
    if (i == 4) pair = Pair{{Avalanche(pair.acc[0]), Avalanche(pair.acc[1])}};
    const int offset = i < 4 ? 32 * i : 32 * (i - 4) + 3;
    MixPair(pair, data + 32 * i, data + 32 * i + 16, secret, offset);
  }
  if (pairs == 4) pair = Pair{{Avalanche(pair.acc[0]), Avalanche(pair.acc[1])}};
  MixPair(pair, data + size - 16, data + size - 32, secret, 103);
}

VERBATIM_HOST_DEVICE inline Hash Hash17To240(const std::uint8_t* data, std::size_t size,
                                             const Secret& secret) {
  Pair pair{{size * kPrime64_1, 0}};
  if (size <= 128) {
    Mix17To128(pair, data, size, secret);
  } else {
    Mix129To240(pair, data, size, secret);
  }
  const std::uint64_t high =
      pair.acc[0] * kPrime64_1 + pair.acc[1] * kPrime64_4 + size * kPrime64_2;
  return Hash{Avalanche(pair.acc[0] + pair.acc[1]), 0 - Avalanche(high)};
}

/// Any input of 0 to 240 bytes.
VERBATIM_HOST_DEVICE inline Hash HashShort(const std::uint8_t* data, std::size_t size,
                                           const Secret& secret) {
  if (size == 0) return HashEmpty(secret);
  if (size <= 3) return Hash1To3(data, static_cast<std::uint32_t>(size), secret);
  if (size <= 8) return Hash4To8(data, size, secret);
  if (size <= 16) return Hash9To16(data, size, secret);
  return Hash17To240(data, size, secret);
}

// ---- Above 240 bytes

/// Blocks of a long input; the last holds 1 to 1024 bytes.
constexpr VERBATIM_HOST_DEVICE std::size_t BlockCount(std::size_t size) {
  return (size - 1) / kBlockBytes + 1;
}

/// A lane's accumulator before the first block.
VERBATIM_HOST_DEVICE inline std::uint64_t LaneStart(int lane) {
  const std::uint64_t start[kLanes] = {kPrime32_3, kPrime64_1, kPrime64_2, kPrime64_3,
                                       kPrime64_4, kPrime32_2, kPrime64_5, kPrime32_1};
  return start[lane];
}

/// What one stripe adds to one lane: the neighbour's word, and the product of the halves of its
/// own word under the secret.
VERBATIM_HOST_DEVICE inline std::uint64_t LaneStripeTerm(const std::uint8_t* stripe, int lane,
                                                         std::uint64_t secret_word) {
  const std::uint64_t keyed = Read64(stripe + 8 * lane) ^ secret_word;
  return Read64(stripe + 8 * (lane ^ 1)) + (keyed & 0xffffffffu) * (keyed >> 32);
}

/// What block `block` of a long input adds to one lane; the last block's ends with the stripe that
/// ends the input.
VERBATIM_HOST_DEVICE inline std::uint64_t LaneBlockSum(const std::uint8_t* data, std::size_t size,
                                                       std::size_t block, int lane,
                                                       const Secret& secret) {
  const std::size_t begin = block * kBlockBytes;
  const bool is_last = size - begin <= kBlockBytes;
  const int stripes = static_cast<int>((is_last ? size - begin - 1 : kBlockBytes) / kStripeBytes);
  std::uint64_t sum = 0;
  for (int i = 0; i < stripes; ++i) {
    sum += LaneStripeTerm(data + begin + kStripeBytes * i, lane, secret.word[i + lane]);
  }
  if (is_last) {
    sum += LaneStripeTerm(data + size - kStripeBytes, lane, SecretAt(secret, 121 + 8 * lane));
  }
  return sum;
}

/// A lane's accumulator after a block that added `sum`; all but the last block scramble.
VERBATIM_HOST_DEVICE inline std::uint64_t LaneAbsorb(std::uint64_t acc, std::uint64_t sum,
                                                     bool is_last, int lane, const Secret& secret) {
  acc += sum;
  if (is_last) return acc;
  return (acc ^ acc >> 47 ^ secret.word[16 + lane]) * kPrime32_1;
}

/// One half of the hash from the eight lanes.
VERBATIM_HOST_DEVICE inline std::uint64_t MergeLanes(const std::uint64_t* lanes,
                                                     std::uint64_t start, int offset,
                                                     const Secret& secret) {
  for (int i = 0; i < kLanes; i += 2) {
    start += MultiplyFold(lanes[i] ^ SecretAt(secret, offset + 8 * i),
                          lanes[i + 1] ^ SecretAt(secret, offset + 8 * i + 8));
  }
  return Avalanche(start);
}

/// The hash of a long input of `size` bytes from its eight lanes after the last block.
VERBATIM_HOST_DEVICE inline Hash FinishLong(const std::uint64_t* lanes, std::size_t size,
                                            const Secret& secret) {
  return Hash{MergeLanes(lanes, size * kPrime64_1, 11, secret),
              MergeLanes(lanes, ~(size * kPrime64_2), 117, secret)};
}

/// Any input, by one thread. `data` is only read where size is above 0.
VERBATIM_HOST_DEVICE inline Hash HashSequential(const std::uint8_t* data, std::size_t size,
                                                const Secret& secret) {
  if (size <= kShortBytesMax) return HashShort(data, size, secret);
  std::uint64_t lanes[kLanes];
  const std::size_t blocks = BlockCount(size);
  for (int lane = 0; lane < kLanes; ++lane) {
    std::uint64_t acc = LaneStart(lane);
    for (std::size_t block = 0; block < blocks; ++block) {
      const std::uint64_t sum = LaneBlockSum(data, size, block, lane, secret);
      acc = LaneAbsorb(acc, sum, block + 1 == blocks, lane, secret);
    }
    lanes[lane] = acc;
  }
  return FinishLong(lanes, size, secret);
}

}  // namespace verbatim::xxh3
