#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "bindings.h"
#include "digest_value.h"
#include "raise.h"
#include "tensor_digests.h"

namespace nb = nanobind;

namespace verbatim::python {
namespace {

/// address, bytes, dtype, shape
using TensorTuple = std::tuple<std::uintptr_t, std::size_t, std::string, std::vector<std::int64_t>>;

Result<HostTensor> TensorOf(TensorTuple&& tuple) {
  auto& [address, byte_size, dtype_name, shape] = tuple;
  const std::optional<DType> dtype = DTypeFromName(dtype_name);
  if (!dtype) {
    return UsageError(fmt::format("element type {} cannot be digested", dtype_name));
  }
  std::size_t expected = 0;
  if (!TensorBytes(*dtype, shape.data(), shape.size(), &expected) || expected != byte_size) {
    return UsageError(fmt::format("{} bytes do not fit a shape of {}[{}]", byte_size, dtype_name,
                                  fmt::join(shape, ",")));
  }
  if (address == 0 && byte_size > 0) return UsageError("a tensor has no memory of its own");
  return HostTensor{*dtype, std::move(shape), reinterpret_cast<const void*>(address)};
}

std::vector<nb::bytes> DigestsOf(std::vector<TensorTuple> tuples, int threads) {
  std::vector<HostTensor> tensors;
  tensors.reserve(tuples.size());
  for (TensorTuple& tuple : tuples) tensors.push_back(ValueOrRaise(TensorOf(std::move(tuple))));
  std::vector<Digest> digests;
  {
    nb::gil_scoped_release unlocked;
    digests = DigestTensors(tensors, threads);
  }
  std::vector<nb::bytes> values;
  values.reserve(digests.size());
  for (const Digest& digest : digests) values.push_back(ToBytes(digest));
  return values;
}

nb::bytes NamedDigestOf(const std::vector<std::pair<std::string, nb::bytes>>& tensors) {
  NamedTensorsDigest digest;
  for (const auto& [name, value] : tensors) digest.Add(name, DigestOf(value));
  return ToBytes(digest.Finish());
}

std::vector<std::string> DTypeNames() {
  std::vector<std::string> names;
  for (const DTypeFacts& facts : kDTypes) names.emplace_back(facts.name);
  return names;
}

}  // namespace

void BindDigests(nb::module_& module) {
  module.def("digest_tensors", &DigestsOf, nb::arg("tensors"), nb::arg("threads"));
  module.def("dtype_names", &DTypeNames);
  module.def("named_digest", &NamedDigestOf, nb::arg("tensors"));
}

}  // namespace verbatim::python
