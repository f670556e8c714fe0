// What an operator's input shape makes of its output shape (docs/spec.md, "Supernet").
#pragma once

#include "base/status.h"
#include "supernet/search_space.h"
#include "supernet/spec.h"

namespace verbatim {

/// Output shape of `op` on `input` in a block of this width (`channels` and `features`, 0 for "as
/// the input") and stride; `classes` is a classifier's width. The error's message is the bare
/// reason: the caller says where.
Result<ActivationShape> InferOutput(const OperatorSpec& op, const ActivationShape& input,
                                    const BlockSpec& block, std::int64_t stride,
                                    std::int64_t classes);

/// Whether the operator normalises over the micro-batch.
bool HasBatchNorm(OperatorKind kind);

}  // namespace verbatim
