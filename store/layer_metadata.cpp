#include "store/layer_metadata.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <optional>
#include <set>

namespace verbatim {
namespace {

constexpr const char* kFormat = "verbatim.layer.1";

/// Pieces between commas; none of an empty text.
std::vector<std::string> Split(std::string_view text) {
  std::vector<std::string> pieces;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    pieces.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  return pieces;
}

std::optional<std::int64_t> ToNumber(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < -1) return std::nullopt;
  return number;
}

/// Reads texts as far as they make sense; what does not shows when they are encoded again.
LayerMetadata ReadTexts(const std::map<std::string, std::string>& texts) {
  const auto text = [&](const char* key) {
    const auto found = texts.find(key);
    return found == texts.end() ? std::string() : found->second;
  };
  LayerMetadata metadata;
  metadata.layer = text("layer");
  metadata.version = ToNumber(text("version")).value_or(-1);
  metadata.parameters = Split(text("parameters"));
  metadata.buffers = Split(text("buffers"));
  metadata.optimizer = Split(text("optimizer"));
  metadata.has_step = texts.contains("optimizer");
  for (const std::string& version : Split(text("earlier"))) {
    metadata.earlier.push_back(ToNumber(version).value_or(-1));
  }
  return metadata;
}

/// Counts first: names that multiply would be many.
bool AreItsTensors(const LayerMetadata& metadata, const StoredTensors& file) {
  const std::size_t count =
      metadata.buffers.size() + (metadata.has_step ? 1 : 0) +
      metadata.parameters.size() * (1 + metadata.optimizer.size() + metadata.earlier.size());
  if (count != file.tensors.size()) return false;
  std::set<std::string_view> names;
  for (const StoredTensor& tensor : file.tensors) names.insert(tensor.name);
  const std::vector<std::string> expected = TensorNames(metadata);
  return std::set<std::string_view>(expected.begin(), expected.end()) == names;
}

}  // namespace

std::string OptimizerTensorName(std::string_view parameter, std::string_view state) {
  return fmt::format("{}.{}", parameter, state);
}

std::string EarlierTensorName(std::size_t index, std::string_view parameter) {
  return fmt::format("earlier.{}.{}", index, parameter);
}

std::map<std::string, std::string> EncodeLayerMetadata(const LayerMetadata& metadata) {
  std::map<std::string, std::string> texts{
      {"format", kFormat},
      {"layer", metadata.layer},
      {"version", std::to_string(metadata.version)},
      {"parameters", fmt::format("{}", fmt::join(metadata.parameters, ","))},
      {"buffers", fmt::format("{}", fmt::join(metadata.buffers, ","))}};
  if (metadata.has_step) {
    texts["optimizer"] = fmt::format("{}", fmt::join(metadata.optimizer, ","));
  }
  if (!metadata.earlier.empty()) {
    texts["earlier"] = fmt::format("{}", fmt::join(metadata.earlier, ","));
  }
  return texts;
}

Result<LayerMetadata> ReadLayerMetadata(const StoredTensors& file, const std::string& source) {
  const LayerMetadata metadata = ReadTexts(file.metadata);
  if (EncodeLayerMetadata(metadata) == file.metadata && AreItsTensors(metadata, file)) {
    return metadata;
  }
  return BadInput(
      fmt::format("{} is no checkpoint file: it does not hold what its metadata says", source),
      "restore it from a copy, or use another checkpoint");
}

std::vector<std::string> TensorNames(const LayerMetadata& metadata) {
  std::vector<std::string> names = metadata.parameters;
  names.insert(names.end(), metadata.buffers.begin(), metadata.buffers.end());
  for (const std::string& parameter : metadata.parameters) {
    for (const std::string& state : metadata.optimizer) {
      names.push_back(OptimizerTensorName(parameter, state));
    }
  }
  if (metadata.has_step) names.emplace_back(kStepTensor);
  for (std::size_t i = 0; i < metadata.earlier.size(); ++i) {
    for (const std::string& parameter : metadata.parameters) {
      names.push_back(EarlierTensorName(i, parameter));
    }
  }
  return names;
}

}  // namespace verbatim
