// What re-executing one subnet on both sides of a difference shows, as plain values. No LibTorch.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/record.h"

namespace verbatim {

/// The first tensor, in causal order, that two executions of a subnet leave with other bits, and
/// its first element (in row-major order) that differs.
struct TensorDifference {
  Phase phase = Phase::kForward;
  std::string layer_name;
  std::string op;      ///< "conv k3"
  std::string tensor;  ///< "output of micro-batch 1", "gradient of weight", "weight", …
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> index;  ///< of the element, as many as the shape has
  float left = 0.0f;
  float right = 0.0f;
  std::int64_t elements = 0;
  std::int64_t elements_different = 0;
  double largest_difference = 0.0;  ///< absolute, over all elements; NaN where one is NaN
};

struct Explanation {
  std::int64_t seq = 0;
  /// Whether a side, executed again as it was run, gives the content that its record has of the
  /// subnet. Where not, what made the record's numbers is not to be had again.
  bool left_reproduced = false;
  bool right_reproduced = false;
  std::string left_policy;  ///< under which the side was executed
  std::string right_policy;
  std::optional<TensorDifference> first;  ///< nothing: both sides leave the same bits
};

}  // namespace verbatim
