#include "store/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "supernet/json_reader.h"

namespace verbatim {
namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kAlignment = 8;
constexpr std::size_t kRankMax = 64;
constexpr const char* kMetadata = "__metadata__";
constexpr std::pair<DType, const char*> kTypeNames[] = {
    {DType::kFloat64, "F64"},   {DType::kFloat32, "F32"}, {DType::kFloat16, "F16"},
    {DType::kBFloat16, "BF16"}, {DType::kInt64, "I64"},   {DType::kInt32, "I32"},
    {DType::kUInt8, "U8"},      {DType::kBool, "BOOL"}};

const char* NameOf(DType dtype) {
  for (const auto& [known, name] : kTypeNames) {
    if (known == dtype) return name;
  }
  VERBATIM_CHECK(false, "element type {}", static_cast<std::uint32_t>(dtype));
}

std::string LittleEndian(std::uint64_t value) {
  std::string bytes(kLengthBytes, '\0');
  for (std::size_t i = 0; i < kLengthBytes; ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  return bytes;
}

std::uint64_t FromLittleEndian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;)
    value = value << 8 | static_cast<std::uint8_t>(bytes[i]);
  return value;
}

/// Pointers in the order in which the file has their bytes.
std::vector<const StoredTensor*> InFileOrder(const StoredTensors& content) {
  std::vector<const StoredTensor*> order;
  for (const StoredTensor& tensor : content.tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const StoredTensor* a, const StoredTensor* b) {
    return std::tuple(SizeOf(b->dtype), std::string_view(a->name)) <
           std::tuple(SizeOf(a->dtype), std::string_view(b->name));
  });
  return order;
}

/// Reads a header, member by member; the first error stays.
class HeaderReader {
 public:
  HeaderReader(std::string_view data, const std::string& source) : data_(data), source_(source) {}

  Result<StoredTensors> Read(const JsonNode& header) {
    VERBATIM_CHECK(header.kind == JsonKind::kObject);
    StoredTensors content;
    for (const JsonNode& member : header.children) {
      if (member.key == kMetadata) {
        RETURN_IF_ERROR(ReadMetadata(member, content));
      } else {
        ASSIGN_OR_RETURN(StoredTensor tensor, ReadTensor(member));
        content.tensors.push_back(std::move(tensor));
      }
    }
    RETURN_IF_ERROR(CheckRanges());
    return content;
  }

 private:
  struct Range {
    std::uint64_t begin;
    std::uint64_t end;
    const std::string* name;
  };

  tl::unexpected<Error> Refuse(const std::string& what) const {
    return BadInput(fmt::format("{} is damaged or no safetensors file: {}", source_, what),
                    "restore it from a copy");
  }
  tl::unexpected<Error> Refuse(const JsonNode& tensor, const char* what) const {
    return Refuse(fmt::format("tensor \"{}\" {}", tensor.key, what));
  }

  Status ReadMetadata(const JsonNode& node, StoredTensors& content) const {
    if (node.kind != JsonKind::kObject) return Refuse("__metadata__ is no object");
    for (const JsonNode& entry : node.children) {
      if (entry.kind != JsonKind::kString) return Refuse("__metadata__ holds more than texts");
      content.metadata[entry.key] = entry.text;
    }
    return {};
  }

  Result<StoredTensor> ReadTensor(const JsonNode& node) {
    const JsonNode* const dtype = node.Find("dtype");
    const JsonNode* const shape = node.Find("shape");
    const JsonNode* const offsets = node.Find("data_offsets");
    if (!dtype || !shape || !offsets || node.children.size() != 3) {
      return Refuse(node, "has not exactly the fields dtype, shape and data_offsets");
    }
    StoredTensor tensor;
    tensor.name = node.key;
    const auto* const type =
        std::find_if(std::begin(kTypeNames), std::end(kTypeNames), [&](const auto& known) {
          return dtype->kind == JsonKind::kString && dtype->text == known.second;
        });
    if (type == std::end(kTypeNames)) return Refuse(node, "is of a type that is not known");
    tensor.dtype = type->first;
    const auto dimensions = ReadNumbers(*shape);
    if (!dimensions || dimensions->size() > kRankMax) return Refuse(node, "has no sound shape");
    tensor.shape.assign(dimensions->begin(), dimensions->end());
    const auto range = ReadNumbers(*offsets);
    if (!range || range->size() != 2 || (*range)[0] > (*range)[1] || (*range)[1] > data_.size()) {
      return Refuse(node, "has no sound data_offsets");
    }
    std::size_t bytes = 0;
    if (!TensorBytes(tensor.dtype, tensor.shape.data(), tensor.shape.size(), &bytes) ||
        bytes != (*range)[1] - (*range)[0]) {
      return Refuse(node, "has data_offsets that do not fit its shape");
    }
    ranges_.push_back({(*range)[0], (*range)[1], &node.key});
    tensor.data = data_.substr((*range)[0], bytes);
    return tensor;
  }

  /// A list of integers from 0 to below 2^63; nothing where it is another.
  static std::optional<std::vector<std::uint64_t>> ReadNumbers(const JsonNode& node) {
    if (node.kind != JsonKind::kArray) return std::nullopt;
    std::vector<std::uint64_t> numbers;
    for (const JsonNode& item : node.children) {
      constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
      if (item.kind != JsonKind::kInteger || item.negative || item.magnitude > kMax) {
        return std::nullopt;
      }
      numbers.push_back(item.magnitude);
    }
    return numbers;
  }

  Status CheckRanges() {
    std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) {
      return std::tuple(a.begin, a.end) < std::tuple(b.begin, b.end);
    });
    std::uint64_t covered = 0;
    for (const Range& range : ranges_) {
      if (range.begin != covered) {
        return Refuse(fmt::format("tensor \"{}\" begins at byte {} instead of {}", *range.name,
                                  range.begin, covered));
      }
      covered = range.end;
    }
    if (covered == data_.size()) return {};
    return Refuse(fmt::format("it has {} bytes of tensors, and its header tells of {}",
                              data_.size(), covered));
  }

  std::string_view data_;
  const std::string& source_;
  std::vector<Range> ranges_;
};

}  // namespace

const StoredTensor* StoredTensors::Find(std::string_view name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const StoredTensor& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

std::vector<std::string_view> EncodedTensors::Pieces() const {
  std::vector<std::string_view> pieces{header};
  pieces.insert(pieces.end(), data.begin(), data.end());
  return pieces;
}

std::size_t EncodedTensors::bytes() const {
  std::size_t bytes = header.size();
  for (const std::string_view piece : data) bytes += piece.size();
  return bytes;
}

EncodedTensors EncodeSafetensors(const StoredTensors& content) {
  EncodedTensors encoded;
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!content.metadata.empty()) header[kMetadata] = content.metadata;
  std::size_t offset = 0;
  for (const StoredTensor* const tensor : InFileOrder(content)) {
    std::size_t bytes = 0;
    VERBATIM_CHECK(TensorBytes(tensor->dtype, tensor->shape.data(), tensor->shape.size(), &bytes) &&
                       bytes == tensor->data.size(),
                   "tensor {} has {} bytes", tensor->name, tensor->data.size());
    nlohmann::ordered_json& entry = header[tensor->name];
    VERBATIM_CHECK(entry.is_null() && tensor->name != kMetadata, "two tensors named {}",
                   tensor->name);
    entry["dtype"] = NameOf(tensor->dtype);
    entry["shape"] = tensor->shape;
    entry["data_offsets"] = {offset, offset + bytes};
    offset += bytes;
    encoded.data.push_back(tensor->data);
  }
  std::string text = header.dump();
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  VERBATIM_CHECK(text.size() <= kSafetensorsHeaderBytesMax, "a header of {} bytes", text.size());
  encoded.header = LittleEndian(text.size()) + text;
  return encoded;
}

Result<StoredTensors> ParseSafetensors(std::string_view bytes, const std::string& source) {
  const auto refuse = [&](const std::string& what) {
    return BadInput(fmt::format("{} is damaged or no safetensors file: {}", source, what),
                    "restore it from a copy");
  };
  if (bytes.size() < kLengthBytes) return refuse(fmt::format("it has {} bytes", bytes.size()));
  const std::uint64_t length = FromLittleEndian(bytes);
  bytes.remove_prefix(kLengthBytes);
  if (length > bytes.size() || length > kSafetensorsHeaderBytesMax) {
    return refuse(fmt::format("its header of {} bytes does not fit", length));
  }
  // The format asks for it; a JSON reader would also take a byte order mark or white space.
  if (length == 0 || bytes.front() != '{') return refuse("its header is no JSON object");
  const auto header = ParseJson(bytes.substr(0, length), "header");
  if (!header) return refuse(header.error().message);
  return HeaderReader(bytes.substr(length), source).Read(*header);
}

}  // namespace verbatim
