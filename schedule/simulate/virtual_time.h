// The clock of a simulation: whole ticks, so that what should happen at one instant does.
#pragma once

#include <cmath>
#include <cstdint>

namespace verbatim {

using Ticks = std::int64_t;

/// Ticks of a power of two per unit: sums of costs that are such fractions stay exact.
class VirtualTime {
 public:
  /// `subnet_max`: the most time that one subnet takes, transfers included. It becomes about 2^28
  /// ticks, so that 2^32 subnets fit into 63 bits.
  explicit VirtualTime(double subnet_max)
      : ticks_per_unit_(subnet_max > 0 ? std::exp2(std::floor(28.0 - std::log2(subnet_max)))
                                       : 1.0) {}

  Ticks Of(double units) const { return std::llround(units * ticks_per_unit_); }
  double Units(Ticks ticks) const { return static_cast<double>(ticks) / ticks_per_unit_; }

 private:
  double ticks_per_unit_;
};

}  // namespace verbatim
