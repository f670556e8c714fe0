#include "supernet/stream.h"

#include <algorithm>
#include <unordered_map>

#include "base/check.h"

namespace verbatim {

std::vector<std::uint32_t> DrawSamples(std::span<const std::uint32_t> pool, std::int64_t count,
                                       const RandomKey& key) {
  const auto wanted = static_cast<std::uint32_t>(count);
  const auto size = static_cast<std::uint32_t>(pool.size());
  VERBATIM_CHECK(count >= 0 && wanted == count && size == pool.size() && wanted <= size,
                 "{} of {} samples", count, pool.size());
  // A Fisher–Yates shuffle over places: those not named here still hold their own number. Place i
  // is never looked at again after step i, so that only place j need be kept.
  std::unordered_map<std::uint32_t, std::uint32_t> moved;
  moved.reserve(wanted);
  std::vector<std::uint32_t> samples(wanted);
  KeyedRandom random(key);
  for (std::uint32_t i = 0; i < wanted; ++i) {
    const std::uint32_t j = i + random.Below(size - i);
    const auto at_i = moved.find(i);
    const std::uint32_t own = at_i == moved.end() ? i : at_i->second;
    const auto [at_j, untouched] = moved.try_emplace(j, j);
    samples[i] = pool[j == i ? own : at_j->second];
    at_j->second = own;
  }
  return samples;
}

RowRange MicrobatchRows(std::int64_t batch, std::int64_t microbatches, std::int64_t m) {
  const std::int64_t rows = (batch + microbatches - 1) / microbatches;
  return {.first = std::min(m * rows, batch), .last = std::min((m + 1) * rows, batch)};
}

}  // namespace verbatim
