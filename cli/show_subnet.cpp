#include <fmt/format.h>

#include <string>
#include <vector>

#include "cli/json_text.h"
#include "cli/show_views.h"
#include "verify/layer_table.h"
#include "verify/text.h"

namespace verbatim {

std::string VersionText(std::int64_t seq) {
  return seq < 0 ? "initial" : fmt::format("{}", seq);
}

namespace {

std::string ShortOrDash(const std::optional<Digest>& digest) {
  return digest ? ToShortHex(*digest) : "-";
}

std::string ChoicesText(const LayerTable& table, const SubnetRow& subnet) {
  std::string text;
  for (int position = 1; position <= table.blocks(); ++position) {
    const LayerRow& layer = table.layer(table.LayerAt(position, subnet.choices));
    text += fmt::format("  {:<12} {}\n", layer.name, layer.op);
  }
  return text;
}

std::string AccessesText(const LayerTable& table, const SubnetRow& subnet) {
  std::string text = fmt::format("  {:<12} {:>5} {:>8} {:>8}  {:<8} {:<8} {:<8}\n", "layer",
                                 "stage", "read", "updated", "weights", "state", "gradient");
  for (const AccessRow& access : subnet.accesses) {
    text += fmt::format("  {:<12} {:>5} {:>8} {:>8}  {:<8} {:<8} {:<8}\n", table.Name(access.layer),
                        access.stage, VersionText(access.read_seq), VersionText(access.base_seq),
                        ShortOrDash(access.weights), ShortOrDash(access.optimizer_state),
                        ShortOrDash(access.gradients));
  }
  return text;
}

std::string SamplesText(const SubnetRow& subnet) {
  return fmt::format("{} {}", FormatCount(std::ssize(subnet.samples), "sample:", "samples:"),
                     fmt::join(subnet.samples, " "));
}

std::string RenderText(const LayerTable& table, const std::string& record,
                       const SubnetRow& subnet) {
  return fmt::format(
      "Subnet {} of {}\n"
      "  loss   {}\n"
      "  batch  {}, {}\n"
      "Choices\n{}"
      "Accesses\n{}",
      subnet.seq, record, FormatLoss(subnet.loss_bits), ToHex(subnet.batch_digest),
      SamplesText(subnet), ChoicesText(table, subnet), AccessesText(table, subnet));
}

Json ActivationsJson(const SubnetRow& subnet) {
  Json list = Json::array();
  for (const ActivationRow& row : subnet.activations) {
    Json json;
    json["microbatch"] = row.microbatch;
    json["position"] = row.position;
    json["digest"] = ToHex(row.digest);
    list.push_back(std::move(json));
  }
  return list;
}

Json AccessesJson(const LayerTable& table, const SubnetRow& subnet) {
  Json list = Json::array();
  for (const AccessRow& access : subnet.accesses) {
    Json json;
    json["layer"] = access.layer;
    json["layer_name"] = table.Name(access.layer);
    json["stage"] = access.stage;
    json["read_seq"] = access.read_seq;
    json["base_seq"] = access.base_seq;
    json["weights"] = DigestJson(access.weights);
    json["optimizer_state"] = DigestJson(access.optimizer_state);
    json["gradients"] = DigestJson(access.gradients);
    list.push_back(std::move(json));
  }
  return list;
}

std::string RenderJson(const LayerTable& table, const std::string& record,
                       const SubnetRow& subnet) {
  Json json;
  json["record"] = record;
  json["subnet"] = subnet.seq;
  json["loss"] = LossJson(subnet.loss_bits);
  json["choices"] = subnet.choices;
  json["choice_names"] = Json::array();
  for (int position = 1; position <= table.blocks(); ++position) {
    json["choice_names"].push_back(table.Name(table.LayerAt(position, subnet.choices)));
  }
  json["samples"] = subnet.samples;
  json["batch_digest"] = ToHex(subnet.batch_digest);
  json["accesses"] = AccessesJson(table, subnet);
  json["activations"] = ActivationsJson(subnet);
  return ToJsonText(json);
}

}  // namespace

Result<std::string> ShowSubnet(const RecordReader& reader, const std::string& record,
                               std::int64_t seq, ShowFormat format) {
  ASSIGN_OR_RETURN(auto rows, reader.Layers());
  ASSIGN_OR_RETURN(const LayerTable table, LayerTable::Build(std::move(rows)));
  ASSIGN_OR_RETURN(const auto subnet, reader.Subnet(seq, {true, true, false}));
  if (!subnet) {
    ASSIGN_OR_RETURN(const std::int64_t count, reader.SubnetCount());
    return UsageError(
        fmt::format("{} has no subnet {}", record, seq),
        fmt::format("It holds {}, counted from 0.", FormatCount(count, "subnet", "subnets")));
  }
  if (const auto problem = table.ChoicesProblem(subnet->choices)) {
    return BadInput(fmt::format("{}: subnet {} {}", record, seq, *problem),
                    fmt::format("verbatim verify {} lists all damage.", ShellPath(record)));
  }
  return format == ShowFormat::kJson ? RenderJson(table, record, *subnet)
                                     : RenderText(table, record, *subnet);
}

}  // namespace verbatim
