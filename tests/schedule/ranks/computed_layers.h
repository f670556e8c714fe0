// Training as hashes: what a subnet leaves of a layer is a function of all that it read, of its
// micro-batches and of their order. So whatever a schedule gets wrong shows in what it computes.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "schedule/causal_graph.h"
#include "supernet/search_space.h"

namespace verbatim::ranks_test {

using Hash = std::uint64_t;

/// A bijection of `value` for each `into`; the order of what is mixed in bears on the result.
inline Hash Mix(Hash into, Hash value) {
  Hash x = into * 0x9e3779b97f4a7c15 + value + 0x632be59bd9b4e019;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// A layer as one subnet left it.
struct LayerVersion {
  std::int64_t seq = -1;
  Hash weights = 0;
  Hash optimizer = 0;
  bool operator==(const LayerVersion&) const = default;
};

inline LayerVersion InitialVersion(int layer) {
  return {-1, Mix(1, static_cast<Hash>(layer)), 0};
}

/// What stage 0 begins a micro-batch with.
inline Hash BatchHash(std::int64_t seq, std::int32_t microbatch) {
  return Mix(Mix(2, static_cast<Hash>(seq)), static_cast<Hash>(microbatch));
}

/// A subnet on one range of positions, from its first forward to its update. Ranges that follow
/// each other compute what one range over all does.
class ComputedPart {
 public:
  /// `layers`, by position of the range. They must outlive it.
  explicit ComputedPart(std::vector<const Layer*> layers)
      : layers_(std::move(layers)), reads_(layers_.size()), gradients_(layers_.size(), 3) {
    for (std::size_t i = 0; i < layers_.size(); ++i) reads_[i] = InitialVersion(layers_[i]->id);
  }

  std::size_t size() const { return layers_.size(); }
  const Layer& layer(std::size_t i) const { return *layers_[i]; }
  const LayerVersion& read(std::size_t i) const { return reads_[i]; }
  /// Before the first forward, for layers with versions.
  void SetRead(std::size_t i, const LayerVersion& version) { reads_[i] = version; }

  Hash Forward(std::int32_t microbatch, Hash activation) {
    std::vector<Hash>& inputs = inputs_[microbatch];
    for (const LayerVersion& read : reads_) {
      inputs.push_back(activation);
      activation = Mix(activation, read.weights);
    }
    return activation;
  }

  Hash Backward(std::int32_t microbatch, Hash gradient) {
    const std::vector<Hash>& inputs = inputs_.at(microbatch);
    for (std::size_t i = layers_.size(); i-- > 0;) {
      gradients_[i] = Mix(gradients_[i], Mix(inputs[i], gradient));
      gradient = Mix(gradient, reads_[i].weights);
    }
    return gradient;
  }

  /// Layer `i` after the update, applied to `base`.
  LayerVersion Updated(std::size_t i, std::int64_t seq, const LayerVersion& base) const {
    const Hash optimizer = Mix(base.optimizer, gradients_[i]);
    return {seq, Mix(base.weights, optimizer), optimizer};
  }

 private:
  std::vector<const Layer*> layers_;
  std::vector<LayerVersion> reads_;
  std::map<std::int32_t, std::vector<Hash>> inputs_;  ///< by micro-batch, then position
  std::vector<Hash> gradients_;                       ///< by position, accumulated
};

/// What one subnet must read, update and leave of one layer.
struct ExpectedAccess {
  LayerVersion read;
  LayerVersion base;
  LayerVersion left;
};

/// The sequential reference: each subnet reads, updates and leaves before the next one starts.
/// Which version is read is found from the definition alone, by looking back.
class SequentialReference {
 public:
  explicit SequentialReference(const SearchSpace& space, std::int32_t microbatches)
      : space_(space), microbatches_(microbatches) {
    for (const Layer& layer : space.layers()) versions_.push_back({InitialVersion(layer.id)});
  }

  void Train(std::int64_t seq, std::span<const std::uint16_t> choices) {
    std::vector<const Layer*> layers;
    for (int position = 0; position < space_.positions(); ++position) {
      layers.push_back(&space_.LayerAt(position, choices));
    }
    ComputedPart part(std::move(layers));
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (part.layer(i).IsVersioned()) part.SetRead(i, VersionRead(part.layer(i), seq));
    }
    Hash loss = 0;
    std::vector<Hash> outputs;
    for (std::int32_t m = 0; m < microbatches_; ++m) {
      outputs.push_back(part.Forward(m, BatchHash(seq, m)));
    }
    for (std::int32_t m = 0; m < microbatches_; ++m) {
      loss = Mix(loss, outputs[m]);
      part.Backward(m, outputs[m]);
    }
    losses_[seq] = loss;
    Update(seq, part);
  }

  const ExpectedAccess& Access(std::int64_t seq, int layer) const {
    return accesses_.at({seq, layer});
  }
  /// What the micro-batches' losses, in order, mix to.
  Hash Loss(std::int64_t seq) const { return losses_.at(seq); }
  /// The layer as the subnets up to `seq` left it.
  LayerVersion LeftBy(std::int64_t seq, int layer) const {
    LayerVersion left = versions_[layer].front();
    for (const LayerVersion& version : versions_[layer]) {
      if (version.seq <= seq) left = version;
    }
    return left;
  }

 private:
  LayerVersion VersionRead(const Layer& layer, std::int64_t seq) const {
    LayerVersion read = versions_[layer.id].front();
    for (const LayerVersion& version : versions_[layer.id]) {
      if (version.seq < seq - layer.delay) read = version;
    }
    return read;
  }

  void Update(std::int64_t seq, const ComputedPart& part) {
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (!part.layer(i).IsVersioned()) continue;
      std::vector<LayerVersion>& versions = versions_[part.layer(i).id];
      const LayerVersion left = part.Updated(i, seq, versions.back());
      accesses_[{seq, part.layer(i).id}] = {part.read(i), versions.back(), left};
      versions.push_back(left);
    }
  }

  const SearchSpace& space_;
  std::int32_t microbatches_;
  std::vector<std::vector<LayerVersion>> versions_;  ///< by layer, all
  std::map<std::pair<std::int64_t, int>, ExpectedAccess> accesses_;
  std::map<std::int64_t, Hash> losses_;
};

}  // namespace verbatim::ranks_test
