// The cost file (docs/format.md, "Cost file").
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "supernet/costs.h"
#include "supernet/json_reader.h"
#include "supernet/object_reader.h"
#include "supernet/stream.h"
#include "supernet/text_file.h"

namespace verbatim {
namespace {

constexpr const char* kFormat = "verbatim-costs";
constexpr std::int64_t kVersion = 1;
constexpr const char* kHint = "Measure this spec's own costs: verbatim profile SPEC -o costs.json";
/// The unit names where the times are from.
constexpr NameTable<CostSource, 3> kUnitNames{{{"block", CostSource::kEqual},
                                               {"operation", CostSource::kAnalytic},
                                               {"second", CostSource::kMeasured}}};
/// So that no sum of them overflows.
constexpr NumberRange kTimes{0.0, 1e18};
constexpr IntegerRange kBytes{0, std::int64_t{1} << 60};

std::int64_t RowsOf(const Spec& spec) {
  return MicrobatchRows(spec.training.batch, spec.training.microbatches, 0).size();
}

std::string LayerLine(const Layer& layer, const LayerCost& cost) {
  const nlohmann::ordered_json json{{"layer", layer.name},
                                    {"op", Describe(layer.op)},
                                    {"input", ToString(layer.input)},
                                    {"output", ToString(layer.output)},
                                    {"forward", cost.forward},
                                    {"backward", cost.backward},
                                    {"update", cost.update},
                                    {"activation_bytes", cost.activation_bytes},
                                    {"output_bytes", cost.output_bytes},
                                    {"parameter_bytes", cost.parameter_bytes},
                                    {"optimizer_bytes", cost.optimizer_bytes}};
  return json.dump();
}

class CostFileReader {
 public:
  CostFileReader(const std::string& source, const SearchSpace& space, const Spec& spec)
      : source_(source), errors_(source), space_(space), spec_(spec) {}

  Result<CostTable> Read(const JsonNode& root) {
    const ObjectReader object(root, "", {"format", "version", "unit", "microbatch_rows", "layers"},
                              &errors_);
    RETURN_IF_ERROR(ReadHead(object));
    const JsonNode* layers = object.Find("layers", Presence::kRequired);
    if (layers != nullptr && ExpectKind(*layers, JsonKind::kArray, "layers", &errors_)) {
      RETURN_IF_ERROR(ReadLayers(*layers));
    }
    if (errors_.first()) return tl::unexpected(*errors_.first());
    return std::move(costs_);
  }

 private:
  Status ReadHead(const ObjectReader& object) {
    std::string format;
    std::int64_t version = 0;
    std::int64_t rows = 0;
    object.String("format", &format, Presence::kRequired);
    object.Integer("version", {1, std::int64_t{1} << 31}, &version, Presence::kRequired);
    if (!errors_.first() && (format != kFormat || version != kVersion)) {
      return BadInput(fmt::format("{}: is \"{}\" version {}, not \"{}\" version {}", source_,
                                  format, version, kFormat, kVersion),
                      kHint);
    }
    object.Name("unit", kUnitNames, &costs_.source, Presence::kRequired);
    object.Integer("microbatch_rows", {1, std::int64_t{1} << 31}, &rows, Presence::kRequired);
    if (errors_.first()) return tl::unexpected(*errors_.first());
    if (rows == RowsOf(spec_)) return {};
    return BadInput(
        fmt::format("{}: holds costs of micro-batches of {} rows, but those of \"{}\" have {}",
                    source_, rows, spec_.name, RowsOf(spec_)),
        kHint);
  }

  Status ReadLayers(const JsonNode& nodes) {
    for (std::size_t i = 0; i < nodes.children.size() && !errors_.first(); ++i) {
      if (i == space_.layers().size()) break;
      RETURN_IF_ERROR(ReadLayer(nodes.children[i], space_.layers()[i]));
    }
    if (nodes.children.size() == space_.layers().size()) return {};
    return BadInput(fmt::format("{}: holds {} layers, but \"{}\" has {}", source_,
                                nodes.children.size(), spec_.name, space_.layers().size()),
                    kHint);
  }

  Status ReadLayer(const JsonNode& node, const Layer& layer) {
    const ObjectReader object(
        node, fmt::format("layers[{}]", layer.id),
        {"layer", "op", "input", "output", "forward", "backward", "update", "activation_bytes",
         "output_bytes", "parameter_bytes", "optimizer_bytes"},
        &errors_);
    LayerCost cost;
    std::string name, op, input, output;
    object.String("layer", &name, Presence::kRequired);
    object.String("op", &op, Presence::kRequired);
    object.String("input", &input, Presence::kRequired);
    object.String("output", &output, Presence::kRequired);
    object.Number("forward", kTimes, &cost.forward, Presence::kRequired);
    object.Number("backward", kTimes, &cost.backward, Presence::kRequired);
    object.Number("update", kTimes, &cost.update, Presence::kRequired);
    object.Integer("activation_bytes", kBytes, &cost.activation_bytes, Presence::kRequired);
    object.Integer("output_bytes", kBytes, &cost.output_bytes, Presence::kRequired);
    object.Integer("parameter_bytes", kBytes, &cost.parameter_bytes, Presence::kRequired);
    object.Integer("optimizer_bytes", kBytes, &cost.optimizer_bytes, Presence::kRequired);
    if (errors_.first()) return {};
    costs_.layers.push_back(cost);
    const std::string found = fmt::format("{} ({}, {} to {})", name, op, input, output);
    const std::string wanted = fmt::format("{} ({}, {} to {})", layer.name, Describe(layer.op),
                                           ToString(layer.input), ToString(layer.output));
    if (found == wanted) return {};
    return BadInput(fmt::format("{}: layer {} is {}, but in \"{}\" it is {}", source_, layer.id,
                                found, spec_.name, wanted),
                    kHint);
  }

  const std::string& source_;
  ReadErrors errors_;
  const SearchSpace& space_;
  const Spec& spec_;
  CostTable costs_;
};

}  // namespace

std::string_view UnitOf(CostSource source) {
  return NameOf(kUnitNames, source);
}

std::string CostsToJson(const CostTable& costs, const SearchSpace& space, const Spec& spec) {
  std::string text = fmt::format(
      "{{\"format\": \"{}\", \"version\": {}, \"unit\": \"{}\", \"microbatch_rows\": {},\n"
      "\"layers\": [",
      kFormat, kVersion, UnitOf(costs.source), RowsOf(spec));
  for (const Layer& layer : space.layers()) {
    text += layer.id == 0 ? "\n" : ",\n";
    text += LayerLine(layer, costs.layers.at(static_cast<std::size_t>(layer.id)));
  }
  return text + "\n]}\n";
}

Result<std::string> ReadCostText(const std::filesystem::path& path) {
  return ReadTextFile(path, "the cost file", kHint);
}

Result<CostTable> ParseCosts(const std::string& text, const std::string& source,
                             const SearchSpace& space, const Spec& spec) {
  ASSIGN_OR_RETURN(const JsonNode root, ParseJson(text, source));
  return CostFileReader(source, space, spec).Read(root);
}

Result<CostTable> ReadCosts(const std::filesystem::path& path, const SearchSpace& space,
                            const Spec& spec) {
  ASSIGN_OR_RETURN(const std::string text, ReadCostText(path));
  return ParseCosts(text, path.string(), space, spec);
}

}  // namespace verbatim
