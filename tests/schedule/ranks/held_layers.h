// The layers as one rank holds them: by the rules that the trainer keeps its tensors by.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "supernet/search_space.h"
#include "tests/schedule/ranks/computed_layers.h"

namespace verbatim::ranks_test {

/// A layer without a delay is one state, in one place: what is sent away is here no longer. Of a
/// layer with a delay also the weights of versions that a subnet may still read are kept.
class HeldLayers {
 public:
  explicit HeldLayers(const SearchSpace& space) : space_(space) {
    for (const Layer& layer : space.layers()) {
      held_.push_back({InitialVersion(layer.id), {InitialVersion(layer.id)}});
    }
  }

  /// The version that subnet `seq` sees: the newest here, or the newest here that is old enough.
  std::optional<LayerVersion> Read(const Layer& layer, std::int64_t seq) const {
    const Held& held = held_[layer.id];
    if (layer.delay == 0) return held.state;
    const auto visible = std::find_if(
        held.versions.rbegin(), held.versions.rend(), [&](const LayerVersion& version) {
          return version.seq < std::max<std::int64_t>(seq - layer.delay, 0);
        });
    return visible == held.versions.rend() ? std::nullopt : std::optional(*visible);
  }

  /// The state that an update is applied to.
  std::optional<LayerVersion> State(int layer) const { return held_[layer].state; }

  void Write(const Layer& layer, const LayerVersion& version) {
    held_[layer.id].state = version;
    Keep(layer, version);
    DropUnread(layer, version.seq + 1);
  }

  /// What a delivery takes along; nothing where this rank does not have it.
  std::optional<LayerVersion> Send(const Layer& layer, std::int64_t seq, bool is_base) {
    Held& held = held_[layer.id];
    if (is_base || layer.delay == 0) {
      if (!held.state || held.state->seq != seq) return std::nullopt;
      return *std::exchange(held.state, std::nullopt);
    }
    const auto version = std::find_if(held.versions.begin(), held.versions.end(),
                                      [&](const LayerVersion& v) { return v.seq == seq; });
    return version == held.versions.end() ? std::nullopt : std::optional(*version);
  }

  /// For subnet `reader`, which updates the version if it is its base.
  void Place(const Layer& layer, const LayerVersion& version, std::int64_t reader, bool is_base) {
    if (is_base) held_[layer.id].state = version;
    Keep(layer, version);
    if (is_base) DropUnread(layer, reader);  // all earlier users have updated
  }

  /// Versions of one layer that are kept for readers.
  std::int64_t Kept(int layer) const { return std::ssize(held_[layer].versions); }

 private:
  struct Held {
    std::optional<LayerVersion> state;
    std::vector<LayerVersion> versions;  ///< ascending; of a layer with a delay
  };

  void Keep(const Layer& layer, const LayerVersion& version) {
    if (layer.delay == 0) return;
    std::vector<LayerVersion>& versions = held_[layer.id].versions;
    const auto at = std::lower_bound(
        versions.begin(), versions.end(), version,
        [](const LayerVersion& a, const LayerVersion& b) { return a.seq < b.seq; });
    if (at == versions.end() || at->seq != version.seq) versions.insert(at, version);
  }

  /// Drops what no subnet from `next` on reads.
  void DropUnread(const Layer& layer, std::int64_t next) {
    std::vector<LayerVersion>& versions = held_[layer.id].versions;
    while (versions.size() > 1 && versions[1].seq < next - layer.delay) {
      versions.erase(versions.begin());
    }
  }

  const SearchSpace& space_;
  std::vector<Held> held_;
};

}  // namespace verbatim::ranks_test
