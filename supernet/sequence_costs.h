// What an operator on a sequence computes and keeps for one sample, counted from its shapes.
#pragma once

#include "supernet/operator_costs.h"
#include "supernet/search_space.h"

namespace verbatim {

/// Of a layer whose input is a sequence, `skip` aside: its layer norm (eight operations an element,
/// as a batch norm), the operator over the places of its part, activation and dropout.
OperatorWork SequenceWorkOf(const Layer& layer);

}  // namespace verbatim
