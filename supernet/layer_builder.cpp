#include "supernet/layer_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "supernet/operator_shape.h"
#include "supernet/operator_tensors.h"
#include "supernet/spec_limits.h"
#include "supernet/spec_names.h"
#include "supernet/stream.h"

namespace verbatim {
namespace {

Status WithPlace(Status status, const Spec& spec, const std::string& place) {
  if (status) return status;
  return BadInput(fmt::format("spec \"{}\": {}{}{}", spec.name, place, place.empty() ? "" : ": ",
                              status.error().message),
                  status.error().hint);
}

/// Whether the product of factors >= 1 stays within kMaxTensorElements.
bool IsAllowedSize(const std::vector<std::int64_t>& factors) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) {
    if (factor > kMaxTensorElements / product) return false;
    product *= factor;
  }
  return true;
}

std::int64_t LargestMicrobatch(const TrainingSpec& training) {
  return MicrobatchRows(training.batch, training.microbatches, 0).size();
}

std::int64_t SmallestMicrobatch(const TrainingSpec& training) {
  return MicrobatchRows(training.batch, training.microbatches, training.microbatches - 1).size();
}

/// Values per place, of a layer's input or within it.
std::int64_t LargestWidth(const Layer& layer) {
  const bool attends =
      layer.op.kind == OperatorKind::kAttention || layer.op.kind == OperatorKind::kCrossAttention;
  const std::int64_t scores = attends ? layer.op.heads * layer.input.length : 0;
  return std::max({layer.input.channels, layer.op.hidden, scores});
}

Status CheckPerChannel(const std::vector<double>& values, const char* name, std::int64_t channels) {
  const auto size = static_cast<std::int64_t>(values.size());
  if (size == 1 || size == channels) return {};
  return BadInput(fmt::format("data.{} holds {} numbers, but the images have {} channels", name,
                              size, channels),
                  "give one number, or one per channel");
}

}  // namespace

LayerBuilder::LayerBuilder(const Spec& spec, ActivationShape input, std::int64_t classes)
    : spec_(spec), classes_(classes), shape_(input) {}

Status LayerBuilder::AddAll() {
  RETURN_IF_ERROR(WithPlace(CheckWhole(), spec_, ""));
  const SupernetSpec& supernet = spec_.supernet;
  RETURN_IF_ERROR(AddPosition(supernet.stem, supernet.stem.stride, "supernet.stem", "stem"));
  int block_id = 0;
  for (std::size_t i = 0; i < supernet.blocks.size(); ++i) {
    const BlockSpec& block = supernet.blocks[i];
    for (std::int64_t repeat = 0; repeat < block.repeat; ++repeat) {
      const std::string path = repeat == 0
                                   ? fmt::format("supernet.blocks[{}]", i)
                                   : fmt::format("supernet.blocks[{}] (repeat {})", i, repeat);
      RETURN_IF_ERROR(AddPosition(block, repeat == 0 ? block.stride : 1, path,
                                  fmt::format("block{}", block_id++)));
    }
  }
  return AddPosition(supernet.head, 1, "supernet.head", "head");
}

Status LayerBuilder::CheckWhole() const {
  if (shape_.IsImage()) {
    RETURN_IF_ERROR(CheckPerChannel(spec_.data.mean, "mean", shape_.channels));
    RETURN_IF_ERROR(CheckPerChannel(spec_.data.std, "std", shape_.channels));
  }
  if (SmallestMicrobatch(spec_.training) <= 0) {
    return BadInput("the last micro-batch would be empty", "lower training.microbatches");
  }
  const auto& head = spec_.supernet.head.candidates;
  if (head.size() != 1 || head[0].kind != OperatorKind::kClassifier) {
    return BadInput("the head is not one classifier");
  }
  const auto& stem = spec_.supernet.stem.candidates;
  if (stem.size() != 1) return BadInput("the stem is not one operator");
  if (shape_.IsSequence() && stem[0].kind != OperatorKind::kEmbedding) {
    return BadInput(fmt::format("supernet.stem: \"{}\" does not take a text's bytes",
                                NameOf(kOperatorNames, stem[0].kind)),
                    "use \"embedding\"");
  }
  std::int64_t layers = 2;
  for (const BlockSpec& block : spec_.supernet.blocks) {
    layers += block.repeat * static_cast<std::int64_t>(block.candidates.size());
    if (layers > kMaxLayers) {
      return BadInput(fmt::format("the supernet has more than {} layers", kMaxLayers),
                      "lower \"repeat\"");
    }
  }
  return {};
}

Status LayerBuilder::AddPosition(const BlockSpec& block, std::int64_t stride,
                                 const std::string& path, const std::string& name) {
  const bool single = name == "stem" || name == "head";
  ActivationShape output;
  if (block.candidates.empty()) {
    return WithPlace(BadInput("has no candidates"), spec_, path);
  }
  for (std::size_t i = 0; i < block.candidates.size(); ++i) {
    const std::string place = single ? path : fmt::format("{}.candidates[{}]", path, i);
    auto layer = MakeLayer(block, stride, static_cast<int>(i));
    if (!layer) return WithPlace(tl::unexpected(layer.error()), spec_, place);
    layer->name = single ? name : fmt::format("{}.{}", name, i);
    if (i == 0) output = layer->output;
    if (layer->output != output) {
      return WithPlace(
          BadInput(fmt::format("its output is {}, but candidate 0 of its block gives {}",
                               ToString(layer->output), ToString(output)),
                   "all candidates of a block need the same output shape"),
          spec_, place);
    }
    layers_.push_back(*std::move(layer));
  }
  first_layer_.push_back(static_cast<int>(layers_.size()));
  shape_ = output;
  return {};
}

Result<Layer> LayerBuilder::MakeLayer(const BlockSpec& block, std::int64_t stride,
                                      int candidate) const {
  const OperatorSpec& op = block.candidates[static_cast<std::size_t>(candidate)];
  ASSIGN_OR_RETURN(const ActivationShape output,
                   InferOutput(op, shape_, block, stride, {classes_, spec_.data.source}));
  OperatorTensors tensors = TensorsOf(op, shape_, output);
  Layer layer{.id = static_cast<int>(layers_.size()),
              .position = static_cast<int>(first_layer_.size()) - 1,
              .candidate = candidate,
              .name = "",
              .op = op,
              .input = shape_,
              .output = output,
              .stride = stride,
              .residual = block.residual && op.kind != OperatorKind::kSkip,
              .trainable = block.trainable,
              .delay = block.delay,
              .part = block.part,
              .source = spec_.data.source,
              .parameters = std::move(tensors.parameters),
              .buffers = std::move(tensors.buffers)};
  RETURN_IF_ERROR(CheckLayer(layer));
  return layer;
}

Status LayerBuilder::CheckLayer(const Layer& layer) const {
  if (layer.residual && layer.input != layer.output) {
    return BadInput(fmt::format("its output {} cannot be added to its input {}",
                                ToString(layer.output), ToString(layer.input)),
                    "leave out \"residual\" where the shape changes");
  }
  if (HasBatchNorm(layer.op.kind) && layer.output.height * layer.output.width == 1 &&
      SmallestMicrobatch(spec_.training) < 2) {
    return BadInput("its batch norm would get one value per channel from the smallest micro-batch",
                    "raise training.batch, or lower training.microbatches");
  }
  for (const TensorSpec& parameter : layer.parameters) {
    if (!IsAllowedSize(parameter.shape)) {
      return BadInput(
          fmt::format("its {} has more than {} elements", parameter.name, kMaxTensorElements));
    }
  }
  if (layer.op.tied) RETURN_IF_ERROR(CheckTied(layer));
  if (!IsAllowedSize(
          {LargestMicrobatch(spec_.training), LargestWidth(layer), layer.input.Places()})) {
    return BadInput(fmt::format("a micro-batch has more than {} elements", kMaxTensorElements),
                    "lower training.batch, or raise training.microbatches");
  }
  return {};
}

Status LayerBuilder::CheckTied(const Layer& head) const {
  const Layer& stem = layers_.front();
  if (stem.op.kind != OperatorKind::kEmbedding) {
    return BadInput("it is tied to the stem, which is no embedding", "remove \"tied\"");
  }
  if (stem.output.channels == head.input.channels) return {};
  return BadInput(fmt::format("it is tied to an embedding of {} features, but its input has {}",
                              stem.output.channels, head.input.channels),
                  "remove \"tied\", or give the last block the stem's \"features\"");
}

}  // namespace verbatim
