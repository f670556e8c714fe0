// Versions of layers during a simulation: which one an access sees, and what they occupy where.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedule/partition.h"
#include "supernet/costs.h"
#include "supernet/search_space.h"

namespace verbatim {

/// A layer has its newest version, with the optimizer state, and older ones as long as a subnet
/// under way has read them or a delay lets a later subnet read them. Each lives on one stage.
class WeightMemory {
 public:
  /// Initial weights live where `home` runs their positions. References must outlive it.
  WeightMemory(const SearchSpace& space, const CostTable& costs, const StageRanges& home);

  /// Subnet `seq` begins to use a layer; returns the version that it sees: the newest, or with a
  /// delay d the newest below seq - d.
  std::int64_t Read(int layer, std::int64_t seq);
  /// Subnet `seq` updates on `stage` a layer of which it has read version `read`; returns the
  /// version that it updates. Every subnet below `lowest_unfinished` is finished.
  std::int64_t Update(int layer, std::int64_t seq, std::int64_t read, int stage,
                      std::int64_t lowest_unfinished);
  /// The newest version has been sent to `stage`, where it is updated next.
  void MoveNewest(int layer, int stage);
  /// A copy of a version has been sent to `stage`, only to be read; and is needed no more.
  void AddCopy(int layer, int stage) { Occupy(stage, costs_.layers[layer].parameter_bytes); }
  void DropCopy(int layer, int stage) { Occupy(stage, -costs_.layers[layer].parameter_bytes); }

  std::int64_t peak_bytes(int stage) const { return peak_[stage]; }

 private:
  struct Version {
    std::int64_t seq;
    int stage;
    int readers;  ///< subnets that have read it and not updated yet
  };

  void Occupy(int stage, std::int64_t bytes);
  void DropUnneeded(int layer, std::int64_t lowest_unfinished);

  const SearchSpace& space_;
  const CostTable& costs_;
  std::vector<std::vector<Version>> versions_;  ///< by layer, in the order they were written
  std::vector<std::int64_t> bytes_;             ///< by stage
  std::vector<std::int64_t> peak_;              ///< by stage
};

}  // namespace verbatim
