#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "supernet/object_reader.h"
#include "supernet/spec.h"
#include "supernet/spec_limits.h"
#include "supernet/stream.h"
#include "supernet/supernet_parser.h"
#include "supernet/text_file.h"

namespace verbatim {
namespace {

constexpr auto kRequired = Presence::kRequired;

/// A number, or a list with one number per channel.
void ReadPerChannel(const ObjectReader& object, std::string_view name, ReadErrors* errors,
                    std::vector<double>* values) {
  const JsonNode* node = object.Find(name);
  if (node == nullptr) return;
  const bool list = node->kind == JsonKind::kArray;
  const std::string path = object.PathOf(name);
  if (list && node->children.empty()) {
    errors->Report(node->position, path, "must hold one number, or one per channel");
  }
  values->assign(list ? node->children.size() : 1, 1.0);
  const NumberRange any{.least = std::numeric_limits<double>::lowest()};
  for (std::size_t i = 0; i < values->size(); ++i) {
    const JsonNode& item = list ? node->children[i] : *node;
    const std::string item_path = list ? fmt::format("{}[{}]", path, i) : path;
    ReadNumber(item, item_path, any, &(*values)[i], errors);
    const auto rounded = static_cast<float>((*values)[i]);
    if (!std::isfinite(rounded)) errors->Report(item.position, item_path, "too large for float32");
    if (name == "std" && !(rounded > 0.0f)) {
      errors->Report(item.position, item_path, "must be above 0, as a float32 too",
                     "inputs are divided by it");
    }
  }
}

void ReadTextFields(const ObjectReader& object, ReadErrors* errors, DataSpec* data) {
  object.String("file", &data->file, kRequired);
  object.Integer("length", {1, kMaxLength}, &data->length, kRequired);
  object.Integer("source", {0, kMaxLength}, &data->source);
  const JsonNode* source = object.Find("source");
  if (source != nullptr && data->length > 0 && data->source >= data->length) {
    errors->Report(
        source->position, object.PathOf("source"),
        fmt::format("must be below data.length {}, found {}", data->length, data->source),
        "the places after it are the ones that are predicted");
  }
}

void ReadData(const JsonNode& node, ReadErrors* errors, DataSpec* data) {
  const auto format = ReadVariant(node, "data", "format", kDataFormatNames, errors);
  if (!format) return;
  data->format = *format;
  const bool text = *format == DataFormat::kText;
  std::vector<std::string_view> fields = {"format", "folder", "holdout"};
  fields.insert(fields.end(), {text ? "file" : "mean", text ? "length" : "std"});
  if (text) fields.push_back("source");
  const ObjectReader object(node, "data", fields, errors);
  object.String("folder", &data->folder, kRequired);
  object.Number("holdout", kFraction, &data->holdout);
  if (text) {
    ReadTextFields(object, errors, data);
  } else {
    ReadPerChannel(object, "mean", errors, &data->mean);
    ReadPerChannel(object, "std", errors, &data->std);
  }
}

/// Whether every block has enough candidates to keep the distance.
void CheckReuseDistance(const JsonNode& node, const std::string& path, std::int64_t distance,
                        const SupernetSpec& supernet, ReadErrors* errors) {
  for (std::size_t i = 0; i < supernet.blocks.size(); ++i) {
    const std::size_t candidates = supernet.blocks[i].candidates.size();
    if (std::cmp_less_equal(distance, candidates)) continue;
    errors->Report(node.position, path,
                   fmt::format("supernet.blocks[{}] has {} candidates, so that one of them is used "
                               "again after at most {} subnets, not {}",
                               i, candidates, candidates, distance),
                   "lower it, or leave it out: half of each block's candidates");
    return;
  }
}

void ReadSampler(const JsonNode& node, const std::string& path, const SupernetSpec& supernet,
                 ReadErrors* errors, SamplerSpec* sampler);

void ReadFair(const JsonNode& node, const std::string& path, const SupernetSpec& supernet,
              ReadErrors* errors, SamplerSpec* sampler) {
  const ObjectReader object(node, path, {"kind", "reuse_distance"}, errors);
  const JsonNode* distance = object.Find("reuse_distance");
  if (distance == nullptr) return;
  object.Integer("reuse_distance", {0, kMaxCandidates}, &sampler->reuse_distance.emplace(0));
  CheckReuseDistance(*distance, object.PathOf("reuse_distance"), *sampler->reuse_distance, supernet,
                     errors);
}

void ReadReorder(const JsonNode& node, const std::string& path, const SupernetSpec& supernet,
                 ReadErrors* errors, SamplerSpec* sampler) {
  const ObjectReader object(node, path, {"kind", "of", "window", "neighbours"}, errors);
  object.Integer("window", {1, kMaxWindow}, &sampler->window);
  object.Integer("neighbours", {1, kMaxNeighbours}, &sampler->neighbours);
  const JsonNode* of = object.Find("of", kRequired);
  if (of == nullptr) return;
  ReadSampler(*of, object.PathOf("of"), supernet, errors, &sampler->of.emplace_back());
  if (sampler->of[0].kind == SamplerKind::kReorder) {
    errors->Report(of->position, object.PathOf("of"), "a reordered sampler cannot be reordered",
                   "name the sampler whose draws are reordered: \"uniform\", \"list\" or \"fair\"");
  }
}

void ReadSampler(const JsonNode& node, const std::string& path, const SupernetSpec& supernet,
                 ReadErrors* errors, SamplerSpec* sampler) {
  const auto kind = ReadVariant(node, path, "kind", kSamplerNames, errors);
  if (!kind) return;
  sampler->kind = *kind;
  switch (*kind) {
    case SamplerKind::kUniform:
      ObjectReader(node, path, {"kind"}, errors);
      break;
    case SamplerKind::kList:
      ObjectReader(node, path, {"kind", "file"}, errors).String("file", &sampler->file, kRequired);
      break;
    case SamplerKind::kFair:
      ReadFair(node, path, supernet, errors, sampler);
      break;
    case SamplerKind::kReorder:
      ReadReorder(node, path, supernet, errors, sampler);
      break;
  }
}

void ReadSgd(const JsonNode& node, const std::string& path, ReadErrors* errors,
             OptimizerSpec* optimizer) {
  const ObjectReader object(node, path, {"kind", "momentum", "nesterov", "weight_decay"}, errors);
  object.Number("momentum", kFraction, &optimizer->momentum);
  object.Boolean("nesterov", &optimizer->nesterov);
  object.Number("weight_decay", kNonNegative, &optimizer->weight_decay);
  if (optimizer->nesterov && optimizer->momentum == 0.0) {
    errors->Report(node.Find("nesterov")->position, path + ".nesterov", "needs momentum",
                   "give \"momentum\" a value above 0");
  }
}

void ReadAdam(const JsonNode& node, const std::string& path, ReadErrors* errors,
              OptimizerSpec* optimizer) {
  const ObjectReader object(node, path, {"kind", "betas", "epsilon", "weight_decay"}, errors);
  object.Number("epsilon", kNonNegative, &optimizer->epsilon);
  object.Number("weight_decay", kNonNegative, &optimizer->weight_decay);
  const JsonNode* betas = object.Find("betas");
  const std::string betas_path = object.PathOf("betas");
  if (betas == nullptr || !ExpectKind(*betas, JsonKind::kArray, betas_path, errors)) return;
  if (betas->children.size() != 2) {
    errors->Report(betas->position, betas_path,
                   fmt::format("must hold two numbers, found {}", betas->children.size()));
    return;
  }
  ReadNumber(betas->children[0], betas_path + "[0]", kFraction, &optimizer->beta1, errors);
  ReadNumber(betas->children[1], betas_path + "[1]", kFraction, &optimizer->beta2, errors);
}

void ReadOptimizer(const JsonNode& node, ReadErrors* errors, OptimizerSpec* optimizer) {
  const std::string path = "training.optimizer";
  const auto kind = ReadVariant(node, path, "kind", kOptimizerNames, errors);
  if (!kind) return;
  optimizer->kind = *kind;
  (*kind == OptimizerKind::kSgd ? ReadSgd : ReadAdam)(node, path, errors, optimizer);
}

void ReadLr(const JsonNode& node, ReadErrors* errors, LrSpec* lr) {
  const std::string path = "training.lr";
  const auto kind = ReadVariant(node, path, "kind", kLrNames, errors);
  if (!kind) return;
  lr->kind = *kind;
  std::vector<std::string_view> fields = {"kind", "base", "warmup"};
  if (*kind == LrKind::kStep) fields.insert(fields.end(), {"every", "gamma"});
  if (*kind == LrKind::kCosine) fields.push_back("final");
  const ObjectReader object(node, path, fields, errors);
  object.Number("base", kNonNegative, &lr->base, kRequired);
  object.Integer("warmup", {0, kMaxSubnets}, &lr->warmup);
  if (*kind == LrKind::kStep) object.Integer("every", {1, kMaxSubnets}, &lr->every, kRequired);
  object.Number("gamma", kNonNegative, &lr->gamma);
  object.Number("final", kNonNegative, &lr->final);
}

void ReadTraining(const JsonNode& node, ReadErrors* errors, TrainingSpec* training) {
  const ObjectReader object(
      node, "training",
      {"subnets", "batch", "microbatches", "optimizer", "lr", "loss", "label_smoothing"}, errors);
  object.Integer("subnets", {1, kMaxSubnets}, &training->subnets, kRequired);
  object.Integer("batch", {1, kMaxBatch}, &training->batch, kRequired);
  object.Integer("microbatches", {1, kMaxMicrobatches}, &training->microbatches);
  const JsonNode* microbatches = object.Find("microbatches");
  if (microbatches != nullptr && training->batch > 0 &&
      MicrobatchRows(training->batch, training->microbatches, training->microbatches - 1).size() <=
          0) {
    errors->Report(microbatches->position, "training.microbatches",
                   fmt::format("the last of {} micro-batches of {} rows would be empty",
                               training->microbatches, training->batch),
                   "lower it, or choose a multiple of it for \"batch\"");
  }
  if (const JsonNode* optimizer = object.Find("optimizer", kRequired)) {
    ReadOptimizer(*optimizer, errors, &training->optimizer);
  }
  if (const JsonNode* lr = object.Find("lr", kRequired)) ReadLr(*lr, errors, &training->lr);
  constexpr NameTable<int, 1> kLossNames{{{"cross_entropy", 0}}};
  int loss = 0;
  object.Name("loss", kLossNames, &loss);
  object.Number("label_smoothing", kFraction, &training->label_smoothing);
}

void ReadEvaluation(const JsonNode& node, ReadErrors* errors, EvaluationSpec* evaluation) {
  const ObjectReader object(node, "evaluation", {"subnets", "calibration_batches"}, errors);
  object.Integer("subnets", {0, kMaxSubnets}, &evaluation->subnets);
  object.Integer("calibration_batches", {0, kMaxMicrobatches}, &evaluation->calibration_batches);
}

void ReadDocument(const JsonNode& root, ReadErrors* errors, Spec* spec) {
  const ObjectReader object(root, "",
                            {"name", "seed", "numerics", "data", "supernet", "sampler", "training",
                             "evaluation", "record"},
                            errors);
  object.String("name", &spec->name, kRequired);
  object.Unsigned("seed", &spec->seed);
  object.Name("numerics", kNumericsNames, &spec->numerics);
  if (const JsonNode* node = object.Find("data", kRequired)) ReadData(*node, errors, &spec->data);
  if (const JsonNode* node = object.Find("supernet", kRequired)) {
    ReadSupernet(*node, errors, &spec->supernet);
  }
  if (const JsonNode* node = object.Find("sampler")) {
    ReadSampler(*node, "sampler", spec->supernet, errors, &spec->sampler);
  }
  if (const JsonNode* node = object.Find("training", kRequired)) {
    ReadTraining(*node, errors, &spec->training);
  }
  if (const JsonNode* node = object.Find("evaluation")) {
    ReadEvaluation(*node, errors, &spec->evaluation);
  }
  if (const JsonNode* node = object.Find("record")) {
    ObjectReader(*node, "record", {"level"}, errors)
        .Name("level", kRecordLevelNames, &spec->record_level);
  }
}

}  // namespace

Result<Spec> ParseSpec(std::string_view text, const std::string& source) {
  ASSIGN_OR_RETURN(const JsonNode root, ParseJson(text, source));
  Spec spec;
  ReadErrors errors(source);
  ReadDocument(root, &errors, &spec);
  if (errors.first()) return tl::unexpected(*errors.first());
  return spec;
}

Result<Spec> ReadSpec(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const std::string text,
                   ReadTextFile(path, "the spec", "name a JSON file (docs/spec.md)"));
  return ParseSpec(text, path.string());
}

}  // namespace verbatim
