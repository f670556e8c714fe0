#include "trainer/data/split.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/keyed_random.h"

namespace verbatim {

Split SplitHeldOut(std::uint32_t size, double fraction, std::uint64_t seed) {
  VERBATIM_CHECK(fraction >= 0.0 && fraction < 1.0, "fraction = {}", fraction);
  std::vector<std::uint32_t> order(size);
  std::iota(order.begin(), order.end(), 0u);
  KeyedRandom random(RandomKey{seed, RandomPurpose::kSplit});
  for (std::uint32_t i = size; i-- > 1;) std::swap(order[i], order[random.Below(i + 1)]);

  const auto held_out = static_cast<std::ptrdiff_t>(std::floor(size * fraction + 0.5));
  std::sort(order.begin(), order.begin() + held_out);
  std::sort(order.begin() + held_out, order.end());
  return {.train = {order.begin() + held_out, order.end()},
          .held_out = {order.begin(), order.begin() + held_out}};
}

}  // namespace verbatim
