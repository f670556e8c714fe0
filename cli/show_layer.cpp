#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "cli/json_text.h"
#include "cli/show_views.h"
#include "supernet/nearest_name.h"
#include "verify/layer_table.h"
#include "verify/text.h"

namespace verbatim {
namespace {

std::string RenderText(const LayerRow& layer, const std::string& record,
                       const std::vector<LineageRow>& lineage) {
  std::string text = fmt::format(
      "Layer {} of {}: {}\n"
      "  id       {}, candidate {} of position {}\n"
      "  initial  {}\n",
      layer.name, record, layer.op, layer.layer, layer.candidate, layer.position,
      ToHex(layer.initial_digest));
  if (!layer.versioned) return text + "  It is never written, so it has no versions.\n";
  text += fmt::format("  used by  {}\n", FormatCount(std::ssize(lineage), "subnet", "subnets"));
  text += fmt::format("{:>10} {:>10} {:>10} {:>6}  {}\n", "subnet", "read", "updated", "stage",
                      "weights after");
  for (const LineageRow& row : lineage) {
    text += fmt::format("{:>10} {:>10} {:>10} {:>6}  {}\n", row.seq,
                        VersionText(row.access.read_seq), VersionText(row.access.base_seq),
                        row.access.stage, row.access.weights ? ToHex(*row.access.weights) : "-");
  }
  return text;
}

std::string RenderJson(const LayerRow& layer, const std::string& record,
                       const std::vector<LineageRow>& lineage) {
  Json json;
  json["record"] = record;
  json["layer"] = layer.layer;
  json["layer_name"] = layer.name;
  json["op"] = layer.op;
  json["position"] = layer.position;
  json["candidate"] = layer.candidate;
  json["versioned"] = layer.versioned;
  json["initial_weights"] = ToHex(layer.initial_digest);
  json["lineage"] = Json::array();
  for (const LineageRow& row : lineage) {
    Json entry;
    entry["subnet"] = row.seq;
    entry["read_seq"] = row.access.read_seq;
    entry["base_seq"] = row.access.base_seq;
    entry["stage"] = row.access.stage;
    entry["weights"] = DigestJson(row.access.weights);
    entry["optimizer_state"] = DigestJson(row.access.optimizer_state);
    json["lineage"].push_back(std::move(entry));
  }
  return ToJsonText(json);
}

/// One version of a layer of a step run.
struct StepVersion {
  std::int64_t step;
  AccessRow access;
};

Result<std::vector<StepVersion>> ReadVersions(const RecordReader& reader, std::int32_t layer) {
  std::vector<StepVersion> versions;
  RETURN_IF_ERROR(reader.ForEachSubnet({true, false, false}, [&](const SubnetRow& row) {
    for (const AccessRow& access : row.accesses) {
      if (access.layer == layer) versions.push_back({row.step ? row.step->step : row.seq, access});
    }
    return true;
  }));
  return versions;
}

std::string StepsText(const LayerRow& layer, const std::string& record,
                      const std::vector<StepVersion>& versions) {
  std::string text =
      fmt::format("Layer {} of {}: {}\n  id       {}\n", layer.name, record, layer.op, layer.layer);
  if (!layer.versioned) return text + "  It is captured, so it has no versions.\n";
  text += fmt::format("  initial  {}\n{:>10}  {:<32}  {:<8}  {}\n", ToHex(layer.initial_digest),
                      "step", "weights after", "state", "gradient");
  const auto cell = [](const std::optional<Digest>& digest, bool is_short) {
    return digest ? is_short ? ToShortHex(*digest) : ToHex(*digest) : std::string("-");
  };
  for (const StepVersion& version : versions) {
    text += fmt::format(
        "{:>10}  {:<32}  {:<8}  {}\n", version.step, cell(version.access.weights, false),
        cell(version.access.optimizer_state, true), cell(version.access.gradients, true));
  }
  return text;
}

std::string StepsJson(const LayerRow& layer, const std::string& record,
                      const std::vector<StepVersion>& versions) {
  Json json;
  json["record"] = record;
  json["layer"] = layer.layer;
  json["layer_name"] = layer.name;
  json["op"] = layer.op;
  json["versioned"] = layer.versioned;
  json["initial_weights"] = layer.versioned ? Json(ToHex(layer.initial_digest)) : Json(nullptr);
  json["lineage"] = Json::array();
  for (const StepVersion& version : versions) {
    Json entry;
    entry["step"] = version.step;
    entry["weights"] = DigestJson(version.access.weights);
    entry["optimizer_state"] = DigestJson(version.access.optimizer_state);
    entry["gradients"] = DigestJson(version.access.gradients);
    json["lineage"].push_back(std::move(entry));
  }
  return ToJsonText(json);
}

}  // namespace

Result<std::string> ShowLayer(const RecordReader& reader, const std::string& record,
                              const std::string& layer, ShowFormat format) {
  ASSIGN_OR_RETURN(auto rows, reader.Layers());
  ASSIGN_OR_RETURN(const LayerTable table, LayerTable::BuildFor(reader.Kind(), std::move(rows)));
  const auto id = table.Find(layer);
  if (!id) {
    std::vector<std::string_view> names;
    for (const LayerRow& row : table.layers()) names.push_back(row.name);
    return UsageError(fmt::format("{} has no layer '{}'", record, layer),
                      SuggestName(layer, names));
  }
  const LayerRow& found = table.layer(*id);
  const bool is_json = format == ShowFormat::kJson;
  if (reader.Kind() == RunKind::kSteps) {
    ASSIGN_OR_RETURN(const auto versions, ReadVersions(reader, *id));
    return is_json ? StepsJson(found, record, versions) : StepsText(found, record, versions);
  }
  ASSIGN_OR_RETURN(const auto lineage, reader.Lineage(*id));
  return is_json ? RenderJson(found, record, lineage) : RenderText(found, record, lineage);
}

}  // namespace verbatim
