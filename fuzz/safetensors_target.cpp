#include "base/check.h"
#include "fuzz/target.h"
#include "store/safetensors.h"

namespace verbatim::fuzz {
namespace {

std::string Join(const EncodedTensors& encoded) {
  std::string bytes;
  for (const std::string_view piece : encoded.Pieces()) bytes += piece;
  return bytes;
}

}  // namespace

// Whatever order and padding it came in, the canonical form holds the same and stays as it is.
void RunSafetensors(std::string_view input) {
  const auto content = ParseSafetensors(input, "input");
  if (!content) return;
  const std::string canonical = Join(EncodeSafetensors(*content));
  const auto again = ParseSafetensors(canonical, "written");
  VERBATIM_CHECK(again.has_value(), "{}", again.error().message);
  VERBATIM_CHECK(Join(EncodeSafetensors(*again)) == canonical, "{} tensors",
                 content->tensors.size());
  VERBATIM_CHECK(again->metadata == content->metadata, "metadata");
  for (const StoredTensor& tensor : content->tensors) {
    const StoredTensor* same = again->Find(tensor.name);
    VERBATIM_CHECK(same != nullptr && same->dtype == tensor.dtype && same->shape == tensor.shape &&
                       same->data == tensor.data,
                   "tensor {}", tensor.name);
  }
}

std::vector<std::string> SafetensorsSeeds() {
  const std::string data(24, 'x');
  const std::string_view view = data;
  StoredTensors content;
  const std::string empty = Join(EncodeSafetensors(content));
  content.metadata = {{"version", "7"}, {"name", "\xc3\xa9"}};
  content.tensors = {{"weight", DType::kFloat32, {2, 3}, view},
                     {"step", DType::kInt64, {}, view.substr(0, 8)},
                     {"flags", DType::kUInt8, {3}, view.substr(0, 3)},
                     {"none", DType::kFloat16, {4, 0}, {}}};
  return {empty, Join(EncodeSafetensors(content))};
}

}  // namespace verbatim::fuzz
