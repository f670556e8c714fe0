// The operators' arithmetic, on whatever device the tensors live on (docs/spec.md, section 3).
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <span>
#include <vector>

#include "base/keyed_random.h"
#include "supernet/search_space.h"

namespace verbatim {

/// Of a new batch in running statistics (docs/spec.md, section 3).
inline constexpr double kBatchNormMomentum = 0.1;

/// How batch norm normalises and which running statistics it touches.
struct BatchNormMode {
  bool use_batch_statistics = true;
  double momentum = kBatchNormMomentum;
};

/// Everything one application of a layer needs beside its input.
struct OperatorContext {
  std::span<const at::Tensor> parameters;  ///< as Layer::parameters
  std::span<const at::Tensor> buffers;     ///< as Layer::buffers; empty: none read, none written
  BatchNormMode batch_norm;
  std::optional<RandomKey> dropout;  ///< absent: no dropout
  at::Tensor tied;                   ///< for a tied head: the stem's embedding that the subnet read
};

/// Applies a layer to a micro-batch: N × C × H × W, N × length × C or N × F, float32; of a text's
/// bytes N × length, int64. Differentiable. A residual block's input is added. Throws what LibTorch
/// throws.
at::Tensor ApplyLayer(const Layer& layer, const at::Tensor& input, const OperatorContext& context);

/// Dropout's multiplier for one tensor: 0 or 1/(1-p), a function of key and element alone.
at::Tensor DropoutMask(const at::Tensor& like, double probability, const RandomKey& key);

}  // namespace verbatim
