// Every layer of a supernet, with an input as training gives it one.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "base/status.h"
#include "supernet/search_space.h"
#include "trainer/experiment.h"

namespace verbatim {

/// Calls `visit` for every layer, position by position, with the output of a layer before it, of
/// the first micro-batch of the first subnet. It gives the layer's output; an undefined tensor
/// where another candidate's will do, which it has given or is to give: all candidates of a
/// position give one shape. Ends with the first error.
Status WalkLayers(const Experiment& experiment,
                  const std::function<Result<at::Tensor>(const Layer&, const at::Tensor&)>& visit);

/// As the layer is applied at the first subnet's first micro-batch.
RandomKey FirstDropoutKey(const Experiment& experiment, const Layer& layer);

}  // namespace verbatim
