// Whether operators give the same bits again on a device.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "base/status.h"
#include "trainer/experiment.h"
#include "trainer/operators.h"

namespace verbatim {

/// As ApplyLayer.
using ApplyOneLayer =
    std::function<at::Tensor(const Layer&, const at::Tensor& input, const OperatorContext&)>;

/// Applies every operator of the space twice, forward and backward, to a micro-batch on the
/// experiment's device, and compares the bits; one layer of each operator and shape. kFailed names
/// the first operator that has no deterministic form there, as LibTorch says, or that left other
/// bits the second time. Changes no layer. Throws what LibTorch throws, but for such refusals.
Status CheckOperators(const Experiment& experiment, const ApplyOneLayer& apply = &ApplyLayer);

}  // namespace verbatim
