// A layer that moves between ranks.
#pragma once

#include <cstdint>
#include <span>

#include "schedule/partition.h"

namespace verbatim {

/// Of a stem, two blocks of a linear layer and a skip, and a head. Where the second block takes its
/// skip, that is on stage 0 with the first; else the first is on stage 1, as the second is. So the
/// first block's layer moves between two ranks of one stage.
class MovingPartition : public Partition {
 public:
  int stages() const override { return 2; }
  StageRanges Ranges(std::span<const std::uint16_t> choices) const override {
    return choices[1] == 1 ? StageRanges({0, 3, 4}) : StageRanges({0, 1, 4});
  }
};

}  // namespace verbatim
