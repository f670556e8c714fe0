// The arithmetic of operators on sequences (docs/spec.md, "Operators on sequences").
//
// Sources: Vaswani et al., NeurIPS'17 (attention); Dauphin et al., ICML'17 (gated linear units);
// Wu et al., ICLR'19 (lightweight convolutions); So et al., ICML'19 (the choice of candidates).
#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/operators.h"

namespace verbatim {

/// Applies a layer whose input is a sequence. `input` is N × length × channels, float32; an
/// embedding's is N × length bytes, int64. The layer changes the places of its part, adds the input
/// there where it is residual, and hands on the others; a head gives the decoder's places only.
/// Differentiable. Throws what LibTorch throws.
at::Tensor ApplySequenceLayer(const Layer& layer, const at::Tensor& input,
                              const OperatorContext& context);

}  // namespace verbatim
