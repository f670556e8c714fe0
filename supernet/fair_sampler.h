// Sampler `fair`: every candidate of a block equally often, and never soon after its last use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "supernet/sampler.h"

namespace verbatim {

/// Each block takes its n candidates in rounds without replacement. A round shuffles the order of
/// the round before it within reach of the reuse distance (docs/spec.md, "Sampler fair"); of all
/// orders that keep the distance, each is equally likely.
class FairSampler : public SequentialSampler {
 public:
  /// `sampler.reuse_distance` is met by every block: at most its number of candidates.
  FairSampler(const SamplerSpec& sampler, std::uint64_t seed, const ChoiceSpace& space);

 protected:
  void Restart() const override;
  Choices Next() const override;

 private:
  struct Block {
    std::uint32_t reach;  ///< of so many remaining places one is taken, from the second round on
    Choices order;        ///< chosen in this round, then what remains of the round before
    KeyedRandom random;   ///< of this round
  };
  KeyedRandom Random(std::size_t block, std::int64_t round) const;
  std::uint16_t Choose(std::size_t block) const;

  std::uint64_t seed_;
  mutable std::vector<Block> blocks_;
  mutable std::int64_t next_ = 0;  ///< seq
};

}  // namespace verbatim
