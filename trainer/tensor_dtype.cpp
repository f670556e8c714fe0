#include "trainer/tensor_dtype.h"

#include "base/check.h"

namespace verbatim {
namespace {

struct Pair {
  at::ScalarType type;
  DType dtype;
};

constexpr Pair kPairs[] = {
    {at::kFloat, DType::kFloat32},     {at::kDouble, DType::kFloat64}, {at::kHalf, DType::kFloat16},
    {at::kBFloat16, DType::kBFloat16}, {at::kLong, DType::kInt64},     {at::kInt, DType::kInt32},
    {at::kByte, DType::kUInt8},        {at::kBool, DType::kBool},
};

}  // namespace

DType ToDType(at::ScalarType type) {
  for (const Pair& pair : kPairs) {
    if (pair.type == type) return pair.dtype;
  }
  VERBATIM_CHECK(false, "tensors of type {} have no number", c10::toString(type));
}

at::ScalarType ToScalarType(DType dtype) {
  for (const Pair& pair : kPairs) {
    if (pair.dtype == dtype) return pair.type;
  }
  return at::ScalarType::Undefined;
}

}  // namespace verbatim
