#include "trainer/operator_check.h"

#include <ATen/ops/ones_like.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/exception_text.h"
#include "trainer/layer_handover.h"
#include "trainer/layer_walk.h"
#include "trainer/tensor_digest.h"

namespace verbatim {
namespace {

/// What an application left: its output, and the gradients of its input and parameters.
struct Application {
  at::Tensor output;
  std::vector<Digest> digests;
};

class OperatorCheck {
 public:
  OperatorCheck(const Experiment& experiment, const ApplyOneLayer& apply)
      : experiment_(experiment), apply_(apply) {}

  Status Run() {
    int position = -1;
    return WalkLayers(
        experiment_, [&](const Layer& layer, const at::Tensor& input) -> Result<at::Tensor> {
          const bool is_first = layer.position != std::exchange(position, layer.position);
          const bool is_new = known_.insert(KeyOf(layer, input)).second;
          if (is_new) RETURN_IF_ERROR(Check(layer, input));
          return is_first ? Apply(layer, input).output : at::Tensor();
        });
  }

 private:
  using Key = std::tuple<std::string, std::int64_t, bool, std::vector<std::int64_t>>;

  static Key KeyOf(const Layer& layer, const at::Tensor& input) {
    return {Describe(layer.op), layer.stride, layer.trainable, input.sizes().vec()};
  }

  Status Check(const Layer& layer, const at::Tensor& input) const {
    try {
      if (Apply(layer, input).digests == Apply(layer, input).digests) return {};
    } catch (const c10::Error& error) {
      const std::string why = ExceptionText(error);
      if (why.find("deterministic") == std::string::npos) throw;
      return Refuse(layer, why);
    }
    return Refuse(layer, "a second application left other bits than the first");
  }

  tl::unexpected<Error> Refuse(const Layer& layer, const std::string& why) const {
    return Failed(fmt::format("{} (layer {}) has no deterministic form on {}: {}",
                              Describe(layer.op), layer.name, experiment_.device.str(), why),
                  "take it out of the spec, or train on another kind of device");
  }

  Application Apply(const Layer& layer, const at::Tensor& input) const {
    const LayerState& state = experiment_.layers[layer.id];
    const auto parameters = LeavesOn(experiment_.device, state.parameters);
    std::vector<at::Tensor> buffers;
    for (const at::Tensor& buffer : state.buffers) {
      buffers.push_back(buffer.to(experiment_.device, /*non_blocking=*/false, /*copy=*/true));
    }
    at::Tensor leaf = input.detach();
    if (layer.position > 0) leaf.requires_grad_();
    OperatorContext context{.parameters = parameters};
    if (layer.trainable) context.buffers = buffers;
    context.dropout = FirstDropoutKey(experiment_, layer);
    std::vector<at::Tensor> stem;
    if (layer.op.tied) {
      stem = LeavesOn(experiment_.device, experiment_.layers.front().parameters);
      context.tied = stem.front();
    }
    Application application{apply_(layer, leaf, context), {}};
    application.digests.push_back(TensorDigest(application.output.detach()));
    for (const at::Tensor& gradient : Gradients(layer, leaf, context, application.output)) {
      application.digests.push_back(TensorDigest(gradient));
    }
    application.output = application.output.detach();
    return application;
  }

  static std::vector<at::Tensor> Gradients(const Layer& layer, const at::Tensor& leaf,
                                           const OperatorContext& context,
                                           const at::Tensor& output) {
    torch::autograd::variable_list inputs;
    if (leaf.requires_grad()) inputs.push_back(leaf);
    if (layer.trainable) {
      inputs.insert(inputs.end(), context.parameters.begin(), context.parameters.end());
    }
    if (context.tied.defined() && context.tied.requires_grad()) inputs.push_back(context.tied);
    if (inputs.empty()) return {};
    return torch::autograd::grad({output}, inputs, {at::ones_like(output)});
  }

  const Experiment& experiment_;
  const ApplyOneLayer& apply_;
  std::set<Key> known_;
};

}  // namespace

Status CheckOperators(const Experiment& experiment, const ApplyOneLayer& apply) {
  return OperatorCheck(experiment, apply).Run();
}

}  // namespace verbatim
