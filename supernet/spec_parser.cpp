#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "supernet/object_reader.h"
#include "supernet/spec.h"
#include "supernet/spec_limits.h"
#include "supernet/stream.h"
#include "supernet/text_file.h"

namespace verbatim {
namespace {

constexpr auto kRequired = Presence::kRequired;
constexpr NumberRange kNonNegative{};
constexpr NumberRange kFraction{.least = 0.0, .limit = 1.0};

/// Which variant of an object it is, by its member `field`.
template <typename E, std::size_t N>
std::optional<E> ReadVariant(const JsonNode& node, const std::string& path, std::string_view field,
                             const NameTable<E, N>& table, ReadErrors* errors) {
  if (!ExpectKind(node, JsonKind::kObject, path, errors)) return std::nullopt;
  const JsonNode* name = node.Find(field);
  if (name != nullptr) return ReadName(*name, fmt::format("{}.{}", path, field), table, errors);
  errors->Report(node.position, fmt::format("{}.{}", path, field), "required, but missing",
                 SuggestName("", NamesOf(table)));
  return std::nullopt;
}

void ReadOperatorFields(const ObjectReader& object, const JsonNode& node, ReadErrors* errors,
                        OperatorSpec* op) {
  object.Integer("kernel", {1, kMaxKernel}, &op->kernel);
  const JsonNode* kernel = node.Find("kernel");
  if (kernel != nullptr && op->kernel % 2 == 0) {
    errors->Report(kernel->position, object.PathOf("kernel"),
                   fmt::format("must be odd, found {}", op->kernel));
  }
  object.Integer("dilation", {1, kMaxDilation}, &op->dilation);
  object.Integer("groups", {1, kMaxWidth}, &op->groups);
  object.Integer("expansion", {1, kMaxExpansion}, &op->expansion);
  object.Integer("hidden", {1, kMaxWidth}, &op->hidden,
                 op->kind == OperatorKind::kFfn ? kRequired : Presence::kOptional);
  object.Integer("heads", {1, kMaxWidth}, &op->heads);
  object.Number("dropout", kFraction, &op->dropout);
  op->activation = DefaultActivation(op->kind);
  object.Name("activation", kActivationNames, &op->activation);
  object.Boolean("tied", &op->tied);
}

OperatorSpec ReadCandidate(const JsonNode& node, const std::string& path, ReadErrors* errors) {
  OperatorSpec op;
  const auto kind = ReadVariant(node, path, "op", kOperatorNames, errors);
  if (!kind) return op;
  op.kind = *kind;
  if (*kind == OperatorKind::kClassifier) {
    errors->Report(node.position, path, "a classifier can only be the head",
                   "use \"linear\" inside the supernet");
  }
  if (*kind == OperatorKind::kEmbedding) {
    errors->Report(node.position, path, "an embedding can only be the stem",
                   "it turns a text's bytes into features once");
  }
  std::vector<std::string_view> fields = OperatorFields(*kind);
  fields.insert(fields.begin(), "op");
  ReadOperatorFields(ObjectReader(node, path, fields, errors), node, errors, &op);
  return op;
}

void ReadBlockFields(const ObjectReader& object, const JsonNode& node, ReadErrors* errors,
                     BlockSpec* block) {
  object.Integer("repeat", {1, kMaxLayers}, &block->repeat);
  object.Integer("channels", {1, kMaxWidth}, &block->channels);
  object.Integer("features", {1, kMaxWidth}, &block->features);
  if (block->channels > 0 && block->features > 0) {
    errors->Report(node.Find("features")->key_position, object.PathOf("features"),
                   "a block gives either images (channels) or vectors (features)",
                   "remove one of the two");
  }
  object.Integer("stride", {1, 2}, &block->stride);
  object.Boolean("residual", &block->residual);
  object.Boolean("trainable", &block->trainable);
  object.Integer("delay", {0, kMaxDelay}, &block->delay);
  object.Name("part", kSequencePartNames, &block->part);
}

/// The stem or the head: block and operator in one object.
BlockSpec ReadSingle(const JsonNode& node, const std::string& path,
                     std::vector<std::string_view> block_fields, ReadErrors* errors) {
  BlockSpec block;
  if (const JsonNode* candidates = node.Find("candidates")) {
    errors->Report(candidates->key_position, path + ".candidates", "it has one operator only",
                   "write its \"op\" and that operator's fields here instead of a list");
  }
  OperatorSpec op;
  if (const auto kind = ReadVariant(node, path, "op", kOperatorNames, errors)) {
    op.kind = *kind;
    std::vector<std::string_view> fields = OperatorFields(*kind);
    fields.insert(fields.begin(), "op");
    fields.insert(fields.end(), block_fields.begin(), block_fields.end());
    const ObjectReader object(node, path, fields, errors);
    ReadOperatorFields(object, node, errors, &op);
    ReadBlockFields(object, node, errors, &block);
  }
  block.candidates = {op};
  return block;
}

BlockSpec ReadBlock(const JsonNode& node, const std::string& path, ReadErrors* errors) {
  BlockSpec block;
  const ObjectReader object(node, path,
                            {"repeat", "channels", "features", "stride", "residual", "trainable",
                             "delay", "part", "candidates"},
                            errors);
  ReadBlockFields(object, node, errors, &block);
  const JsonNode* list = object.Find("candidates", kRequired);
  const std::string list_path = object.PathOf("candidates");
  if (list == nullptr || !ExpectKind(*list, JsonKind::kArray, list_path, errors)) return block;
  if (list->children.empty() || list->children.size() > kMaxCandidates) {
    errors->Report(list->position, list_path,
                   fmt::format("must hold from 1 to {} operators", kMaxCandidates));
  }
  for (std::size_t i = 0; i < list->children.size(); ++i) {
    block.candidates.push_back(
        ReadCandidate(list->children[i], fmt::format("{}[{}]", list_path, i), errors));
  }
  return block;
}

void ReadStem(const JsonNode& node, ReadErrors* errors, BlockSpec* stem) {
  *stem = ReadSingle(node, "supernet.stem",
                     {"channels", "features", "stride", "trainable", "delay"}, errors);
  if (stem->candidates[0].kind == OperatorKind::kClassifier) {
    errors->Report(node.position, "supernet.stem", "a classifier can only be the head",
                   "use \"conv\" or \"linear\" for the stem");
  }
}

void ReadHead(const JsonNode& node, ReadErrors* errors, BlockSpec* head) {
  *head = ReadSingle(node, "supernet.head", {"trainable", "delay"}, errors);
  if (head->candidates[0].kind != OperatorKind::kClassifier) {
    errors->Report(node.position, "supernet.head",
                   fmt::format("must be a classifier, found \"{}\"",
                               NameOf(kOperatorNames, head->candidates[0].kind)),
                   "write {\"op\": \"classifier\"}");
  }
}

void ReadSupernet(const JsonNode& node, ReadErrors* errors, SupernetSpec* supernet) {
  const ObjectReader object(node, "supernet", {"stem", "blocks", "head"}, errors);
  if (const JsonNode* stem = object.Find("stem", kRequired)) {
    ReadStem(*stem, errors, &supernet->stem);
  }
  const JsonNode* blocks = object.Find("blocks", kRequired);
  if (blocks != nullptr && ExpectKind(*blocks, JsonKind::kArray, "supernet.blocks", errors)) {
    if (blocks->children.empty()) {
      errors->Report(blocks->position, "supernet.blocks", "must hold at least one block");
    }
    for (std::size_t i = 0; i < blocks->children.size(); ++i) {
      supernet->blocks.push_back(
          ReadBlock(blocks->children[i], fmt::format("supernet.blocks[{}]", i), errors));
    }
  }
  if (const JsonNode* head = object.Find("head", kRequired)) {
    ReadHead(*head, errors, &supernet->head);
  }
}

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
