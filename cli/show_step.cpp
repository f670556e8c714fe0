#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "cli/json_text.h"
#include "cli/show_views.h"
#include "recorder/step_spec.h"
#include "verify/layer_table.h"
#include "verify/text.h"

namespace verbatim {
namespace {

std::string ShortOrDash(const std::optional<Digest>& digest) {
  return digest ? ToShortHex(*digest) : "-";
}

std::string LossText(std::uint32_t loss_bits) {
  return loss_bits == kNoLoss ? "NaN, or not recorded" : FormatLoss(loss_bits);
}

std::string FactsText(const LayerTable& table, const StepFacts& facts) {
  std::string text;
  if (facts.random_state) text += fmt::format("  random    {}\n", ToHex(*facts.random_state));
  std::vector<std::string> words;
  for (const auto& [name, value] : facts.settings) words.push_back(name + " " + value);
  if (!words.empty()) text += fmt::format("  settings  {}\n", fmt::join(words, ", "));
  words.clear();
  for (const std::int32_t layer : facts.outside) words.push_back(table.Name(layer));
  if (!words.empty()) text += fmt::format("  outside   {}\n", fmt::join(words, ", "));
  return text;
}

std::string LayersText(const LayerTable& table, const SubnetRow& row) {
  if (row.accesses.empty()) return "  none recorded\n";
  std::size_t width = 12;
  for (const LayerRow& layer : table.layers()) width = std::max(width, layer.name.size());
  std::string text =
      fmt::format("  {:<{}} {:<8} {:<8} {:<8}\n", "layer", width, "weights", "state", "gradient");
  for (const AccessRow& access : row.accesses) {
    text += fmt::format("  {:<{}} {:<8} {:<8} {:<8}\n", table.Name(access.layer), width,
                        ShortOrDash(access.weights), ShortOrDash(access.optimizer_state),
                        ShortOrDash(access.gradients));
  }
  if (!row.activations.empty()) text += "Captured\n";
  for (const ActivationRow& captured : row.activations) {
    text += fmt::format("  {:<{}} {} ({})\n", table.Name(captured.position), width,
                        ToShortHex(captured.digest), captured.microbatch);
  }
  return text;
}

std::string RenderText(const LayerTable& table, const std::string& record, const SubnetRow& row) {
  std::string text = fmt::format("Step {} of {}\n  loss      {}\n", row.step->step, record,
                                 LossText(row.loss_bits));
  text += fmt::format("  batch     {}\n",
                      row.batch_digest == Digest{} ? "not recorded" : ToHex(row.batch_digest));
  if (!row.step->parts.empty()) {
    text += fmt::format("  parts    ");
    for (const Digest& part : row.step->parts) text += " " + ToShortHex(part);
    text += "\n";
  }
  return text + FactsText(table, *row.step) + "Layers\n" + LayersText(table, row);
}

Json FactsJson(const LayerTable& table, const StepFacts& facts) {
  Json json;
  json["random_state"] = DigestJson(facts.random_state);
  json["settings"] = Json::parse(SettingsToJson(facts.settings), nullptr, false);
  json["parts"] = Json::array();
  for (const Digest& part : facts.parts) json["parts"].push_back(ToHex(part));
  json["outside"] = Json::array();
  for (const std::int32_t layer : facts.outside) json["outside"].push_back(table.Name(layer));
  return json;
}

std::string RenderJson(const LayerTable& table, const std::string& record, const SubnetRow& row) {
  Json json;
  json["record"] = record;
  json["step"] = row.step->step;
  json["row"] = row.seq;
  json["loss"] = row.loss_bits == kNoLoss ? Json(nullptr) : LossJson(row.loss_bits);
  json["batch_digest"] =
      row.batch_digest == Digest{} ? Json(nullptr) : Json(ToHex(row.batch_digest));
  json.update(FactsJson(table, *row.step));
  json["layers"] = Json::array();
  for (const AccessRow& access : row.accesses) {
    Json layer;
    layer["layer"] = access.layer;
    layer["layer_name"] = table.Name(access.layer);
    layer["weights"] = DigestJson(access.weights);
    layer["optimizer_state"] = DigestJson(access.optimizer_state);
    layer["gradients"] = DigestJson(access.gradients);
    json["layers"].push_back(std::move(layer));
  }
  json["captured"] = Json::array();
  for (const ActivationRow& captured : row.activations) {
    json["captured"].push_back({{"layer_name", table.Name(captured.position)},
                                {"occurrence", captured.microbatch},
                                {"digest", ToHex(captured.digest)}});
  }
  return ToJsonText(json);
}

Error MissingRow(const std::string& record, std::int64_t seq) {
  return {ErrorKind::kBadInput, fmt::format("{}: row {} is missing", record, seq),
          fmt::format("verbatim verify {} lists all damage.", ShellPath(record))};
}

/// The number of the step that a row holds.
Result<std::int64_t> StepAt(const RecordReader& reader, const std::string& record,
                            std::int64_t seq) {
  ASSIGN_OR_RETURN(const auto row, reader.Subnet(seq, {false, false, false}));
  if (!row || !row->step) return tl::unexpected(MissingRow(record, seq));
  return row->step->step;
}

}  // namespace

/// Numbers ascend with the rows.
Result<std::int64_t> FindStep(const RecordReader& reader, const std::string& record,
                              std::int64_t step) {
  ASSIGN_OR_RETURN(const std::int64_t count, reader.SubnetCount());
  std::int64_t begin = 0;
  std::int64_t end = count;
  while (begin < end) {
    const std::int64_t middle = begin + (end - begin) / 2;
    ASSIGN_OR_RETURN(const std::int64_t found, StepAt(reader, record, middle));
    if (found == step) return middle;
    if (found < step) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  const std::string message = fmt::format("{} has no step {}", record, step);
  if (count == 0) return UsageError(message, "It holds none.");
  ASSIGN_OR_RETURN(const std::int64_t first, StepAt(reader, record, 0));
  ASSIGN_OR_RETURN(const std::int64_t last, StepAt(reader, record, count - 1));
  return UsageError(message, fmt::format("It holds {}, from step {} to step {}.",
                                         FormatCount(count, "step", "steps"), first, last));
}

Result<std::string> ShowStep(const RecordReader& reader, const std::string& record,
                             std::int64_t step, ShowFormat format) {
  ASSIGN_OR_RETURN(auto rows, reader.Layers());
  ASSIGN_OR_RETURN(const LayerTable table, LayerTable::BuildForSteps(std::move(rows)));
  ASSIGN_OR_RETURN(const std::int64_t seq, FindStep(reader, record, step));
  ASSIGN_OR_RETURN(const auto row, reader.Subnet(seq, {true, true, false}));
  if (!row || !row->step) return tl::unexpected(MissingRow(record, seq));
  return format == ShowFormat::kJson ? RenderJson(table, record, *row)
                                     : RenderText(table, record, *row);
}

}  // namespace verbatim
