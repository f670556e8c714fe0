// The search space: a spec's blocks laid out as positions and layers with known shapes.
//
// Positions are numbered in forward order: 0 is the stem, 1 … B the choice blocks (repeats
// expanded), B + 1 the head. Layers are numbered position by position, candidate by candidate.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "supernet/spec.h"

namespace verbatim {

/// Shape of one sample's activation: an image C × H × W, a sequence of `length` places with
/// `channels` features each, or a vector of `channels` features.
struct ActivationShape {
  std::int64_t channels = 0;
  std::int64_t height = 0;  ///< of an image, else 0
  std::int64_t width = 0;   ///< of an image, else 0
  std::int64_t length = 0;  ///< of a sequence, else 0

  bool IsImage() const { return height > 0; }
  bool IsSequence() const { return length > 0; }
  /// Places of an image or a sequence that share their weights; 1 for a vector.
  std::int64_t Places() const { return IsImage() ? height * width : IsSequence() ? length : 1; }
  std::int64_t Elements() const { return channels * Places(); }
  bool operator==(const ActivationShape&) const = default;
};
/// "16×8×8", "32 places of 64" or "64".
std::string ToString(const ActivationShape& shape);

/// A text's classes: its bytes.
inline constexpr std::int64_t kByteClasses = 256;

/// One sample's shape where the spec alone tells it: a text's, `length` places of one byte.
std::optional<ActivationShape> ShapeOfSpec(const DataSpec& data);

enum class ParameterInit { kKaimingUniform, kZeros, kOnes };

/// A named tensor of a layer: parameter or buffer, float32.
struct TensorSpec {
  std::string name;
  std::vector<std::int64_t> shape;
  ParameterInit init;
};

/// One candidate of one position.
struct Layer {
  int id;        ///< 0 … layers-1
  int position;  ///< 0 … positions-1
  int candidate;
  std::string name;  ///< "stem", "block7.2", "head"
  OperatorSpec op;
  ActivationShape input;
  ActivationShape output;
  std::int64_t stride;
  bool residual;        ///< output = operator(input) + input
  bool trainable;       ///< of the block it belongs to
  std::int64_t delay;   ///< likewise: subnet j reads what the updates below j - delay left
  SequencePart part;    ///< of the block: the places of a sequence that it changes
  std::int64_t source;  ///< places of a sequence that are the encoder's; the decoder has the others
  std::vector<TensorSpec> parameters;
  std::vector<TensorSpec> buffers;

  /// Whether subnets write it: only such layers have versions, predecessors and accesses.
  bool IsVersioned() const { return trainable && !parameters.empty(); }
};

/// "mbconv k5 e6", for people.
std::string Describe(const OperatorSpec& op);

class SearchSpace {
 public:
  /// Infers every shape from one sample's shape. BadInput where a candidate does not fit: a kernel
  /// larger than its image, shapes that cannot be added, a batch norm over a single value, …
  static Result<SearchSpace> Build(const Spec& spec, ActivationShape input, std::int64_t classes);

  int positions() const { return static_cast<int>(first_layer_.size()) - 1; }
  /// Number of choice blocks: positions without stem and head.
  int blocks() const { return positions() - 2; }
  int candidates(int position) const { return first_layer_[position + 1] - first_layer_[position]; }
  const std::vector<Layer>& layers() const { return layers_; }
  const Layer& layer(int id) const { return layers_[id]; }
  /// Layer of `position` under a subnet's choices (one candidate per choice block).
  const Layer& LayerAt(int position, std::span<const std::uint16_t> choices) const;

 private:
  std::vector<Layer> layers_;
  std::vector<int> first_layer_;  ///< by position, and one past the end
};

}  // namespace verbatim
