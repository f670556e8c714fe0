// What a sampler must know of a search space: how many candidates each choice block has, and which
// of them are versioned layers. A record's layers tell it too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace verbatim {

class SearchSpace;

struct ChoiceSpace {
  ChoiceSpace() = default;
  /// Implicit: who has a search space has this.
  ChoiceSpace(const SearchSpace& space);  // NOLINT(google-explicit-constructor)

  /// By block, then by candidate, whether that candidate's layer is versioned. Every block has at
  /// least one candidate.
  std::vector<std::vector<bool>> versioned;

  std::size_t blocks() const { return versioned.size(); }
  std::uint32_t candidates(std::size_t block) const {
    return static_cast<std::uint32_t>(versioned[block].size());
  }
};

}  // namespace verbatim
