// What an operator computes and keeps for one sample, counted from its shapes.
#pragma once

#include <cstdint>

#include "supernet/search_space.h"

namespace verbatim {

struct OperatorWork {
  /// Floating-point operations of the forward pass: a multiply-add is two, an element of a pooling
  /// window, an activation, a dropout mask or a sum is one, an element of a batch norm eight.
  double operations = 0.0;
  /// Elements that automatic differentiation keeps until the backward pass beside the operator's
  /// input, in units of four bytes. Its output is not counted: the next layer counts it as input.
  double kept = 0.0;
};

/// One sample through `layer`, the sum with its input included where it is residual.
OperatorWork WorkOf(const Layer& layer);

}  // namespace verbatim
