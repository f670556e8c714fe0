// Lays out a spec's positions and layers: the work behind SearchSpace::Build.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "supernet/search_space.h"
#include "supernet/spec.h"

namespace verbatim {

/// Adds positions in forward order; each takes the output shape of the one before.
class LayerBuilder {
 public:
  /// `spec` outlives the builder.
  LayerBuilder(const Spec& spec, ActivationShape input, std::int64_t classes);

  /// Every position of the spec. BadInput names spec, block and candidate.
  Status AddAll();

  std::vector<Layer> TakeLayers() { return std::move(layers_); }
  /// By position, and one past the end.
  std::vector<int> TakeFirstLayers() { return std::move(first_layer_); }

 private:
  /// `path` is the block's in the spec ("supernet.blocks[3]"), `name` the layers' ("block7").
  Status AddPosition(const BlockSpec& block, std::int64_t stride, const std::string& path,
                     const std::string& name);
  /// One candidate; the error's message is the bare reason.
  Result<Layer> MakeLayer(const BlockSpec& block, std::int64_t stride, int candidate) const;
  Status CheckLayer(const Layer& layer) const;
  /// Whether the head can use the stem's matrix.
  Status CheckTied(const Layer& head) const;
  /// What concerns no single position.
  Status CheckWhole() const;

  const Spec& spec_;
  const std::int64_t classes_;
  ActivationShape shape_;  ///< what the next position gets
  std::vector<Layer> layers_;
  std::vector<int> first_layer_ = {0};
};

}  // namespace verbatim
