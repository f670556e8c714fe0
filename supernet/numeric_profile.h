// What a numeric profile (docs/spec.md, section 9) asks of a processor.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "supernet/spec.h"

namespace verbatim {

/// The instruction sets without which a processor cannot leave the profile's bits, or cannot
/// execute its kernels at all; named as in base/processor.h. Empty for kNative.
///
/// kX8664V3 asks for those of the level of that name in the x86-64 ABI that numeric kernels may
/// use: ATen's are compiled for AVX2, FMA and F16C, and oneDNN writes its own with BMI2 besides.
/// kX8664 asks for SSE4.1, which oneDNN would otherwise replace by other kernels.
const std::vector<std::string_view>& RequiredInstructionSets(Numerics numerics);

/// Those of them that `available` lacks.
std::vector<std::string> MissingInstructionSets(Numerics numerics,
                                                const std::vector<std::string>& available);

}  // namespace verbatim
