// The keyed split of a data set into training and held-out samples.
#pragma once

#include <cstdint>
#include <vector>

namespace verbatim {

/// Sample indices, each list ascending; together every index below the size exactly once.
struct Split {
  std::vector<std::uint32_t> train;
  std::vector<std::uint32_t> held_out;
};

/// Holds out floor(size·fraction + 0.5) of `size` samples, product and sum each rounded to double:
/// the first ones of a Fisher–Yates permutation (Durstenfeld, CACM 7(7), 1964, algorithm 235)
/// drawn from the stream (seed, kSplit). A pure function of its arguments; docs/spec.md states
/// every step. 0 <= fraction < 1. With few samples either list may be empty: the caller decides
/// whether that is an error.
Split SplitHeldOut(std::uint32_t size, double fraction, std::uint64_t seed);

}  // namespace verbatim
