// Stages with bounded memory in a simulation: a cache of layers, and engines that take time to
// copy them between home and the stages.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "schedule/layer_cache.h"
#include "schedule/simulate/simulation.h"
#include "schedule/simulate/virtual_time.h"
#include "supernet/costs.h"
#include "supernet/search_space.h"

namespace verbatim {

/// Each stage copies one layer at a time from home and one back. References must outlive it.
class DeviceCache {
 public:
  /// A copy that an engine has begun.
  struct Begun {
    int stage;
    Transfer::Kind kind;
    Ticks duration;
  };

  DeviceCache(const SearchSpace& space, const CostTable& costs, int stages,
              const DeviceMemoryOptions& options, const VirtualTime& time);

  void Foresee(std::int64_t seq, std::span<const std::uint16_t> choices, const StageRanges& ranges);
  /// As LayerCache's. Each returns the parts whose layers are there; valid until the next call.
  const std::vector<Residency>& Admit(std::int64_t seq);
  const std::vector<Residency>& Updated(const Residency& part);
  const std::vector<Residency>& Finish(int stage, Transfer::Kind kind);
  void Want(const Residency& part);

  /// What idle engines begin now.
  const std::vector<Begun>& BeginTransfers();
  /// Time passes during which the stage, which runs nothing, might have run a part that waits.
  void Idle(int stage, Ticks duration);

  /// Whether the layer moves through home, and not from stage to stage.
  bool Holds(int layer) const { return !IsPermanent(space_.layer(layer)); }
  DeviceMemoryUse Report() const;
  std::int64_t peak_bytes(int stage) const { return cache_.statistics().peak_bytes[stage]; }

 private:
  struct Stage {
    std::optional<Transfer> load;
    std::optional<Transfer> write_back;
    std::set<std::int64_t> stalled;  ///< subnets that wait there for nothing but their layers
    Ticks stall = 0;
    Ticks stall_for_room = 0;
  };

  std::optional<Transfer>& EngineOf(int stage, Transfer::Kind kind) {
    return kind == Transfer::Kind::kLoad ? stages_[stage].load : stages_[stage].write_back;
  }
  bool BeginTransfer(int stage, Transfer::Kind kind);
  const std::vector<Residency>& Ready();

  const SearchSpace& space_;
  const VirtualTime& time_;
  const double time_per_byte_;
  LayerCache cache_;
  std::set<Residency> resident_;  ///< handed out and not wanted yet
  std::vector<Stage> stages_;
  std::vector<Residency> ready_;
  std::vector<Begun> begun_;
  bool is_stale_ = true;  ///< what engines could begin may have changed
};

/// What layers take by the cost table.
std::vector<LayerBytes> LayerBytesOf(const CostTable& costs);

}  // namespace verbatim
