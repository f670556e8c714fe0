#include <charconv>
#include <nlohmann/json.hpp>

#include "supernet/spec.h"
#include "supernet/spec_names.h"

namespace verbatim {
namespace {

using Json = nlohmann::json;

Json OperatorToJson(const OperatorSpec& op) {
  Json json{{"op", NameOf(kOperatorNames, op.kind)}};
  for (const std::string_view field : OperatorFields(op.kind)) {
    const std::string key(field);
    if (field == "kernel") json[key] = op.kernel;
    if (field == "dilation") json[key] = op.dilation;
    if (field == "groups") json[key] = op.groups;
    if (field == "expansion") json[key] = op.expansion;
    if (field == "hidden") json[key] = op.hidden;
    if (field == "heads") json[key] = op.heads;
    if (field == "dropout") json[key] = op.dropout;
    if (field == "tied") json[key] = op.tied;
    if (field == "activation") json[key] = NameOf(kActivationNames, op.activation);
  }
  return json;
}

/// The fields that a stem shares with blocks. An output "as the input" has no written form.
void AddOutput(const BlockSpec& block, Json* json) {
  if (block.channels > 0) (*json)["channels"] = block.channels;
  if (block.features > 0) (*json)["features"] = block.features;
  (*json)["stride"] = block.stride;
  (*json)["trainable"] = block.trainable;
  (*json)["delay"] = block.delay;
}

Json BlockToJson(const BlockSpec& block) {
  Json json{{"repeat", block.repeat},
            {"residual", block.residual},
            {"part", NameOf(kSequencePartNames, block.part)}};
  AddOutput(block, &json);
  json["candidates"] = Json::array();
  for (const OperatorSpec& op : block.candidates) json["candidates"].push_back(OperatorToJson(op));
  return json;
}

Json SupernetToJson(const SupernetSpec& supernet) {
  Json stem = OperatorToJson(supernet.stem.candidates.at(0));
  AddOutput(supernet.stem, &stem);
  Json head = OperatorToJson(supernet.head.candidates.at(0));
  head["trainable"] = supernet.head.trainable;
  head["delay"] = supernet.head.delay;
  Json blocks = Json::array();
  for (const BlockSpec& block : supernet.blocks) blocks.push_back(BlockToJson(block));
  return {{"stem", stem}, {"blocks", blocks}, {"head", head}};
}

Json PerChannelToJson(const std::vector<double>& values) {
  return values.size() == 1 ? Json(values[0]) : Json(values);
}

Json DataToJson(const DataSpec& data) {
  Json json{{"format", NameOf(kDataFormatNames, data.format)},
            {"folder", data.folder},
            {"holdout", data.holdout}};
  if (data.format == DataFormat::kText) {
    json["file"] = data.file;
    json["length"] = data.length;
    json["source"] = data.source;
  } else {
    json["mean"] = PerChannelToJson(data.mean);
    json["std"] = PerChannelToJson(data.std);
  }
  return json;
}

Json SamplerToJson(const SamplerSpec& sampler) {
  Json json{{"kind", NameOf(kSamplerNames, sampler.kind)}};
  if (sampler.kind == SamplerKind::kList) json["file"] = sampler.file;
  if (sampler.reuse_distance) json["reuse_distance"] = *sampler.reuse_distance;
  if (sampler.kind == SamplerKind::kReorder) {
    json["of"] = SamplerToJson(sampler.of.at(0));
    json["window"] = sampler.window;
    json["neighbours"] = sampler.neighbours;
  }
  return json;
}

Json OptimizerToJson(const OptimizerSpec& optimizer) {
  Json json{{"kind", NameOf(kOptimizerNames, optimizer.kind)},
            {"weight_decay", optimizer.weight_decay}};
  if (optimizer.kind == OptimizerKind::kSgd) {
    json["momentum"] = optimizer.momentum;
    json["nesterov"] = optimizer.nesterov;
  } else {
    json["betas"] = std::vector<double>{optimizer.beta1, optimizer.beta2};
    json["epsilon"] = optimizer.epsilon;
  }
  return json;
}

Json LrToJson(const LrSpec& lr) {
  Json json{{"kind", NameOf(kLrNames, lr.kind)}, {"base", lr.base}, {"warmup", lr.warmup}};
  if (lr.kind == LrKind::kStep) {
    json["every"] = lr.every;
    json["gamma"] = lr.gamma;
  }
  if (lr.kind == LrKind::kCosine) json["final"] = lr.final;
  return json;
}

Json TrainingToJson(const TrainingSpec& training) {
  return {{"subnets", training.subnets},
          {"batch", training.batch},
          {"microbatches", training.microbatches},
          {"optimizer", OptimizerToJson(training.optimizer)},
          {"lr", LrToJson(training.lr)},
          {"loss", "cross_entropy"},
          {"label_smoothing", training.label_smoothing}};
}

void Append(const Json& json, std::string* text);

void AppendMembers(const Json& json, std::string* text) {
  const char* separator = "";
  for (const auto& item : json.items()) {
    text->append(separator);
    if (json.is_object()) text->append(Json(item.key()).dump()).append(":");
    Append(item.value(), text);
    separator = ",";
  }
}

/// As Json::dump, whose floating-point numbers are not always the shortest.
void Append(const Json& json, std::string* text) {
  if (json.is_structured()) {
    text->push_back(json.is_object() ? '{' : '[');
    AppendMembers(json, text);
    text->push_back(json.is_object() ? '}' : ']');
  } else if (json.is_number_float()) {
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, json.get<double>()).ptr;
    text->append(digits, end);
  } else {
    text->append(json.dump());
  }
}

}  // namespace

std::string SpecToJson(const Spec& spec) {
  const Json json{{"name", spec.name},
                  {"seed", spec.seed},
                  {"numerics", NameOf(kNumericsNames, spec.numerics)},
                  {"data", DataToJson(spec.data)},
                  {"supernet", SupernetToJson(spec.supernet)},
                  {"sampler", SamplerToJson(spec.sampler)},
                  {"training", TrainingToJson(spec.training)},
                  {"evaluation",
                   {{"subnets", spec.evaluation.subnets},
                    {"calibration_batches", spec.evaluation.calibration_batches}}},
                  {"record", {{"level", NameOf(kRecordLevelNames, spec.record_level)}}}};
  std::string text;
  Append(json, &text);
  return text;
}

}  // namespace verbatim
