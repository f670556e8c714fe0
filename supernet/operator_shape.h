// What an operator's input shape makes of its output shape (docs/spec.md, "Supernet").
#pragma once

#include "base/status.h"
#include "supernet/search_space.h"
#include "supernet/spec.h"

namespace verbatim {

/// What a shape depends on beside the block: the data's classes, and how many places of a sequence
/// are the encoder's.
struct ShapeContext {
  std::int64_t classes = 0;
  std::int64_t source = 0;
};

/// Output shape of `op` on `input` in a block of this width (`channels` and `features`, 0 for "as
/// the input") and stride. The error's message is the bare reason: the caller says where.
Result<ActivationShape> InferOutput(const OperatorSpec& op, const ActivationShape& input,
                                    const BlockSpec& block, std::int64_t stride,
                                    const ShapeContext& context);

/// Whether the operator normalises over the micro-batch.
bool HasBatchNorm(OperatorKind kind);

}  // namespace verbatim
