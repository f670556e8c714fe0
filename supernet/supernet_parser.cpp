#include "supernet/supernet_parser.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "supernet/spec_limits.h"
#include "supernet/spec_names.h"

namespace verbatim {
namespace {

constexpr auto kRequired = Presence::kRequired;

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

}  // namespace

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

}  // namespace verbatim
