// Sampler `reorder`: another sampler's draws in an order that keeps uses of a layer apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "supernet/sampler.h"

namespace verbatim {

/// A permutation of the inner sampler's first `subnets` draws: each next subnet is the one of
/// `window` pending draws that shares least with the `neighbours` subnets before it, and no draw
/// comes later than 4 · window places after its own (docs/spec.md, "Sampler reorder").
/// O(window · blocks) per subnet.
class ReorderSampler : public SequentialSampler {
 public:
  ReorderSampler(const SamplerSpec& sampler, std::unique_ptr<Sampler> inner, std::int64_t subnets,
                 const ChoiceSpace& space);

 protected:
  void Restart() const override;
  /// There are `subnets` of them.
  Choices Next() const override;

 private:
  struct Pending {
    std::int64_t place;  ///< in the inner sampler's stream
    Choices choices;
  };
  void Fill() const;
  std::size_t Best() const;
  std::int64_t Shared(const Choices& choices) const;
  void Follow(const Choices& choices) const;

  std::int64_t window_;
  std::int64_t neighbours_;
  std::unique_ptr<Sampler> inner_;
  std::int64_t subnets_;
  ChoiceSpace space_;
  mutable std::int64_t taken_ = 0;             ///< draws of the inner sampler
  mutable std::int64_t next_ = 0;              ///< seq
  mutable std::vector<Pending> pending_;       ///< by place
  mutable std::deque<Choices> neighbourhood_;  ///< the last ones, newest first
  /// By block and candidate: the weight of choosing it next, 0 where it is not versioned.
  mutable std::vector<std::vector<std::int64_t>> weight_;
};

}  // namespace verbatim
