#include "supernet/search_space.h"

#include <fmt/format.h>

#include "base/check.h"
#include "supernet/layer_builder.h"
#include "supernet/spec_names.h"

namespace verbatim {

std::string ToString(const ActivationShape& shape) {
  if (shape.IsImage()) return fmt::format("{}×{}×{}", shape.channels, shape.height, shape.width);
  if (shape.IsSequence()) return fmt::format("{} places of {}", shape.length, shape.channels);
  return fmt::format("{}", shape.channels);
}

std::optional<ActivationShape> ShapeOfSpec(const DataSpec& data) {
  if (data.format != DataFormat::kText) return std::nullopt;
  return ActivationShape{.channels = 1, .length = data.length};
}

std::string Describe(const OperatorSpec& op) {
  std::string text(NameOf(kOperatorNames, op.kind));
  for (const std::string_view field : OperatorFields(op.kind)) {
    if (field == "kernel") text += fmt::format(" k{}", op.kernel);
    if (field == "dilation" && op.dilation != 1) text += fmt::format(" d{}", op.dilation);
    if (field == "groups" && op.groups != 1) text += fmt::format(" g{}", op.groups);
    if (field == "expansion") text += fmt::format(" e{}", op.expansion);
    if (field == "hidden") text += fmt::format(" h{}", op.hidden);
    if (field == "heads") text += fmt::format(" {} heads", op.heads);
    if (field == "activation") text += fmt::format(" {}", NameOf(kActivationNames, op.activation));
    if (field == "dropout" && op.dropout > 0) text += fmt::format(" p{}", op.dropout);
    if (field == "tied" && op.tied) text += " tied";
  }
  return text;
}

Result<SearchSpace> SearchSpace::Build(const Spec& spec, ActivationShape input,
                                       std::int64_t classes) {
  VERBATIM_CHECK(input.channels >= 1 && classes >= 1, "input {}, {} classes", ToString(input),
                 classes);
  LayerBuilder builder(spec, input, classes);
  RETURN_IF_ERROR(builder.AddAll());
  SearchSpace space;
  space.layers_ = builder.TakeLayers();
  space.first_layer_ = builder.TakeFirstLayers();
  return space;
}

const Layer& SearchSpace::LayerAt(int position, std::span<const std::uint16_t> choices) const {
  VERBATIM_CHECK(static_cast<int>(choices.size()) == blocks(), "{} choices for {} blocks",
                 choices.size(), blocks());
  VERBATIM_CHECK(position >= 0 && position < positions(), "position {} of {}", position,
                 positions());
  const bool single = position == 0 || position == positions() - 1;
  const int candidate = single ? 0 : choices[static_cast<std::size_t>(position) - 1];
  VERBATIM_CHECK(candidate < candidates(position), "candidate {} at position {}", candidate,
                 position);
  return layers_[static_cast<std::size_t>(first_layer_[static_cast<std::size_t>(position)] +
                                          candidate)];
}

}  // namespace verbatim
