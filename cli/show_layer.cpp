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

}  // namespace

Result<std::string> ShowLayer(const RecordReader& reader, const std::string& record,
                              const std::string& layer, ShowFormat format) {
  ASSIGN_OR_RETURN(auto rows, reader.Layers());
  ASSIGN_OR_RETURN(const LayerTable table, LayerTable::Build(std::move(rows)));
  const auto id = table.Find(layer);
  if (!id) {
    std::vector<std::string_view> names;
    for (const LayerRow& row : table.layers()) names.push_back(row.name);
    return UsageError(fmt::format("{} has no layer '{}'", record, layer),
                      SuggestName(layer, names));
  }
  ASSIGN_OR_RETURN(const auto lineage, reader.Lineage(*id));
  return format == ShowFormat::kJson ? RenderJson(table.layer(*id), record, lineage)
                                     : RenderText(table.layer(*id), record, lineage);
}

}  // namespace verbatim
