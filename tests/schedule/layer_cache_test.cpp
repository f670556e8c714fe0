// A cache of layers: each of its rules by itself, random runs in which every access must find the
// right version, and the loads of one stage beside the fewest possible. By hand, any number of
// seeds:
//   VERBATIM_TEST_SEEDS=10000 build/dev/tests/schedule/schedule_test --gtest_filter='LayerCacheR*'
#include "schedule/layer_cache.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "tests/schedule/cached_machine.h"

namespace verbatim {
namespace {

std::uint64_t Number(const char* variable, std::uint64_t otherwise) {
  const char* const given = std::getenv(variable);
  return given == nullptr ? otherwise : std::strtoull(given, nullptr, 10);
}

TEST(LayerCacheRandomTest, KeepsEveryPromise) {
  const bool is_one = std::getenv("VERBATIM_TEST_SEED") != nullptr;
  const std::uint64_t first = is_one ? Number("VERBATIM_TEST_SEED", 1) : 1;
  const std::uint64_t count = is_one ? 1 : Number("VERBATIM_TEST_SEEDS", 400);
  std::int64_t loads = 0, hits = 0, misses = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const CachedCase drawn = DrawCachedCase(seed);
    SCOPED_TRACE(
        fmt::format("{}\nrepeat: VERBATIM_TEST_SEED={} build/dev/tests/schedule/schedule_test "
                    "--gtest_filter=LayerCacheRandomTest.KeepsEveryPromise",
                    drawn.description, seed));
    CachedMachine machine(drawn);
    ASSERT_TRUE(machine.Run()) << "stuck after " << machine.finished();
    if (HasFailure()) return;
    loads += machine.statistics().loads;
    hits += machine.statistics().hits;
    misses += machine.statistics().misses;
  }
  std::cout << count << " runs: " << loads << " loads, " << hits << " hits, " << misses
            << " misses\n";
}

}  // namespace
}  // namespace verbatim
