// The causal cone of a subnet: the subnets that its weights depend on. Training the cone alone
// gives the cone's subnets the bits that they have in the whole run.
//
// A layer's updates are a chain, each applied to what the one before left, so that a member needs
// all earlier users of its layers: also where a delay lets it read an older link of the chain.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace verbatim {

/// The uses of layers of a stream, from which cones are taken. Memory: four bytes per use. Not
/// thread-safe.
class CausalHistory {
 public:
  /// Layer ids are below `layers`.
  explicit CausalHistory(std::int32_t layers);

  /// The versioned layers that the next subnet (seq 0, 1, 2, …) reads and writes.
  void Add(std::span<const std::int32_t> layers);
  std::int64_t subnets() const { return static_cast<std::int64_t>(first_use_.size()) - 1; }
  /// The last subnet up to `seq` that wrote `layer`, or -1.
  std::int64_t LastWriter(std::int32_t layer, std::int64_t seq) const;

  /// The targets and, transitively, the causal predecessors of all that is in the cone; ascending.
  /// Targets are below subnets(), in any order. O(uses of the stream up to the last target).
  std::vector<std::int64_t> Cone(std::span<const std::int64_t> targets) const;

 private:
  std::span<const std::int32_t> Uses(std::int64_t seq) const;

  std::int32_t layers_;
  std::vector<std::int32_t> uses_;
  std::vector<std::size_t> first_use_{0};  ///< by seq, and one past the end
};

}  // namespace verbatim
