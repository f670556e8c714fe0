// Runs that are computed as training computes, but on digests: what a subnet leaves is a hash of
// its batch and of the layers that it read. So a changed bit spreads as it would in training, and
// a comparison can be held against the causal graph itself.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "base/encoding.h"
#include "base/keyed_random.h"
#include "recorder/content_digest.h"
#include "recorder/digest.h"
#include "store/record.h"
#include "supernet/spec.h"

namespace verbatim {

struct ComputedShape {
  std::int64_t subnets = 300;
  int blocks = 6;
  int candidates = 8;
  std::uint64_t seed = 1;
  std::string level = "weights";
  std::vector<std::int64_t> delays;  ///< by position; 0 where it ends

  std::int64_t DelayAt(int position) const {
    const auto at = static_cast<std::size_t>(position);
    return at < delays.size() ? delays[at] : 0;
  }
};

/// As far as it tells of delays.
inline Spec ComputedSpec(const ComputedShape& shape) {
  Spec spec;
  spec.supernet.stem.delay = shape.DelayAt(0);
  for (int block = 0; block < shape.blocks; ++block) {
    spec.supernet.blocks.emplace_back().delay = shape.DelayAt(block + 1);
  }
  spec.supernet.head.delay = shape.DelayAt(shape.blocks + 1);
  return spec;
}

/// What a fault may change of a subnet while it is computed.
struct Computing {
  SubnetRow& row;                ///< before the forward pass: choices, samples, batch
  std::vector<Digest>& read;     ///< weights as the forward pass sees them, by access
  std::vector<Digest>& weights;  ///< after the update, by access
};
/// Called before the forward pass and after the update of each subnet.
using ComputedFault = std::function<void(bool after_update, Computing)>;

/// Position 0 is the stem and the last one the head, each with one layer; every layer is versioned.
inline std::vector<LayerRow> ComputedLayers(const ComputedShape& shape) {
  std::vector<LayerRow> layers;
  const auto add = [&](std::string name, int position, int candidate) {
    const auto id = static_cast<std::int32_t>(layers.size());
    LayerRow row{id, std::move(name), position, candidate, "linear", true, {}};
    row.initial_digest = DigestBytes(row.name.data(), row.name.size());
    layers.push_back(std::move(row));
  };
  add("stem", 0, 0);
  for (int block = 0; block < shape.blocks; ++block) {
    for (int candidate = 0; candidate < shape.candidates; ++candidate) {
      add("block" + std::to_string(block) + "." + std::to_string(candidate), block + 1, candidate);
    }
  }
  add("head", shape.blocks + 1, 0);
  return layers;
}

inline Digest Mix(std::uint32_t kind, std::initializer_list<Digest> inputs) {
  Encoder message;
  message.U32(kind);
  for (const Digest& input : inputs) message.Bytes(input.bytes.data(), input.bytes.size());
  return DigestBytes(message.bytes().data(), message.bytes().size());
}

class ComputedRun {
 public:
  explicit ComputedRun(const ComputedShape& shape, ComputedFault fault = {})
      : shape_(shape), fault_(std::move(fault)), layers_(ComputedLayers(shape)) {
    for (const LayerRow& layer : layers_) {
      states_.push_back({-1, layer.initial_digest, {}, {{-1, layer.initial_digest}}});
    }
    for (std::int64_t seq = 0; seq < shape.subnets; ++seq) Train(seq);
  }

  const ComputedShape& shape() const { return shape_; }
  const std::vector<LayerRow>& layers() const { return layers_; }
  const std::vector<SubnetRow>& subnets() const { return subnets_; }
  std::vector<SubnetRow>& subnets() { return subnets_; }

 private:
  struct State {
    std::int64_t version;
    Digest weights;
    Digest optimizer_state;
    std::vector<std::pair<std::int64_t, Digest>> versions;  ///< all, with their weights
  };

  /// The newest version that the updates of subnets below seq - delay left.
  const std::pair<std::int64_t, Digest>& VersionRead(std::int64_t seq, std::int32_t layer) const {
    const auto& versions = states_[layer].versions;
    auto version = versions.rbegin();
    while (version->first >=
           std::max<std::int64_t>(seq - shape_.DelayAt(layers_[layer].position), 0)) {
      ++version;
    }
    return *version;
  }

  void Train(std::int64_t seq) {
    SubnetRow row = Start(seq);
    std::vector<Digest> read, weights;
    for (const AccessRow& access : row.accesses) {
      read.push_back(VersionRead(seq, access.layer).second);
    }
    if (fault_) fault_(false, {row, read, weights});
    Digest activation = row.batch_digest;
    for (const Digest& input : read) activation = Mix(1, {activation, input});
    std::memcpy(&row.loss_bits, activation.bytes.data(), sizeof row.loss_bits);
    for (std::size_t i = 0; i < row.accesses.size(); ++i) {
      State& state = states_[row.accesses[i].layer];
      const Digest gradient = Mix(2, {activation, read[i]});
      state.optimizer_state = Mix(3, {state.optimizer_state, gradient});
      weights.push_back(Mix(4, {state.weights, state.optimizer_state}));
      if (shape_.level == "full") row.accesses[i].gradients = gradient;
    }
    if (fault_) fault_(true, {row, read, weights});
    Finish(row, weights);
  }

  SubnetRow Start(std::int64_t seq) const {
    SubnetRow row;
    row.seq = seq;
    const auto seq32 = static_cast<std::uint32_t>(seq);
    KeyedRandom random({shape_.seed, RandomPurpose::kSampler, 0, 0, seq32});
    row.samples = {seq32, seq32 + 1};
    row.batch_digest = Mix(5, {DigestBytes(&seq32, sizeof seq32)});
    for (int position = 0; position < shape_.blocks + 2; ++position) {
      std::int32_t layer = position == 0 ? 0 : 1 + (position - 1) * shape_.candidates;
      if (position > 0 && position <= shape_.blocks) {
        row.choices.push_back(static_cast<std::uint16_t>(
            random.Below(static_cast<std::uint32_t>(shape_.candidates))));
        layer += row.choices.back();
      }
      AccessRow access;
      access.layer = layer;
      access.read_seq = VersionRead(seq, layer).first;
      access.base_seq = states_[layer].version;
      row.accesses.push_back(access);
    }
    return row;
  }

  void Finish(SubnetRow& row, const std::vector<Digest>& weights) {
    for (std::size_t i = 0; i < row.accesses.size(); ++i) {
      AccessRow& access = row.accesses[i];
      State& state = states_[access.layer];
      state.version = row.seq;
      state.weights = weights[i];
      state.versions.emplace_back(row.seq, weights[i]);
      if (shape_.level == "losses") continue;
      access.weights = state.weights;
      access.optimizer_state = state.optimizer_state;
    }
    row.content_leaf = ContentLeaf(row);
    row.layout_leaf = LayoutLeaf(row);
    subnets_.push_back(std::move(row));
  }

  ComputedShape shape_;
  ComputedFault fault_;
  std::vector<LayerRow> layers_;
  std::vector<State> states_;
  std::vector<SubnetRow> subnets_;
};

}  // namespace verbatim
