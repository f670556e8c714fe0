// The parameters and buffers of an operator: the last column of docs/spec.md's operator table.
#pragma once

#include <vector>

#include "supernet/search_space.h"

namespace verbatim {

struct OperatorTensors {
  std::vector<TensorSpec> parameters;
  std::vector<TensorSpec> buffers;
};

/// In the order of the table; the shapes fit InferOutput's.
OperatorTensors TensorsOf(const OperatorSpec& op, const ActivationShape& input,
                          const ActivationShape& output);

}  // namespace verbatim
