#include "trainer/layer_state.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/check.h"
#include "base/keyed_random.h"
#include "recorder/digest.h"
#include "trainer/operators.h"

namespace verbatim {
namespace {

void FillKaimingUniform(const RandomKey& key, at::Tensor& tensor) {
  const std::int64_t fan_in = tensor.numel() / tensor.size(0);
  const auto bound = static_cast<float>(std::sqrt(6.0 / static_cast<double>(fan_in)));
  float* const values = tensor.mutable_data_ptr<float>();
  KeyedRandom random(key);
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    values[i] = (2.0f * UniformFloat(random.NextWord()) - 1.0f) * bound;
  }
}

at::Tensor InitialTensor(const TensorSpec& spec, const RandomKey& key, at::Device device) {
  at::Tensor tensor = at::empty(spec.shape, at::TensorOptions().dtype(at::kFloat));
  switch (spec.init) {
    case ParameterInit::kKaimingUniform:
      FillKaimingUniform(key, tensor);
      break;
    case ParameterInit::kZeros:
      tensor.fill_(0.0f);
      break;
    case ParameterInit::kOnes:
      tensor.fill_(1.0f);
      break;
  }
  return tensor.to(device);
}

/// The state tensors of one kind, one per parameter.
std::vector<at::Tensor> StateColumn(const LayerState& state, std::size_t kind, std::size_t kinds) {
  std::vector<at::Tensor> column;
  column.reserve(state.parameters.size());
  for (std::size_t i = kind; i < state.optimizer_state.size(); i += kinds) {
    column.push_back(state.optimizer_state[i]);
  }
  return column;
}

void ApplyAdam(const OptimizerSpec& optimizer, double learning_rate,
               std::span<const at::Tensor> gradients, const std::vector<at::Tensor>& parameters,
               LayerState& state) {
  const std::vector<at::Tensor> exp_avg = StateColumn(state, 0, 2);
  const std::vector<at::Tensor> exp_avg_sq = StateColumn(state, 1, 2);
  const at::Tensor step =
      at::full({}, static_cast<float>(state.updates + 1), parameters.front().options());
  const std::vector<at::Tensor> steps(parameters.size(), step);
  const at::TensorList grads(gradients.data(), gradients.size());
  const auto apply = [&](const auto& fused) {
    fused(parameters, grads, exp_avg, exp_avg_sq, /*max_exp_avg_sqs=*/at::TensorList{}, steps,
          learning_rate, optimizer.beta1, optimizer.beta2, optimizer.weight_decay,
          optimizer.epsilon, /*amsgrad=*/false, /*maximize=*/false);
  };
  if (optimizer.kind == OptimizerKind::kAdam) {
    apply([](const auto&... arguments) { at::_fused_adam_(arguments...); });
  } else {
    apply([](const auto&... arguments) { at::_fused_adamw_(arguments...); });
  }
}

void ApplySgd(const OptimizerSpec& optimizer, double learning_rate,
              std::span<const at::Tensor> gradients, const std::vector<at::Tensor>& parameters,
              LayerState& state) {
  const at::TensorList grads(gradients.data(), gradients.size());
  at::_fused_sgd_(parameters, grads, state.optimizer_state, optimizer.weight_decay,
                  optimizer.momentum, learning_rate, /*dampening=*/0.0, optimizer.nesterov,
                  /*maximize=*/false, /*is_first_step=*/state.updates == 0);
}

/// Drops versions of a layer with a delay that no subnet reads any more. Subnets up to the newest
/// version have read theirs: updates come in order, each after its own read.
void DropUnread(const Layer& layer, LayerState& state) {
  const auto is_second_visible = [&] {
    const std::int64_t second = state.earlier.size() > 1 ? state.earlier[1].version : state.version;
    return second < state.version + 1 - layer.delay;
  };
  while (!state.earlier.empty() && is_second_visible()) state.earlier.pop_front();
}

}  // namespace

std::vector<const char*> OptimizerStateNames(const OptimizerSpec& optimizer) {
  switch (optimizer.kind) {
    case OptimizerKind::kSgd:
      if (optimizer.momentum == 0.0) return {};
      return {"momentum_buffer"};
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
      return {"exp_avg", "exp_avg_sq"};
  }
  VERBATIM_CHECK(false, "optimizer {}", static_cast<int>(optimizer.kind));
}

LayerState InitialLayerState(const Layer& layer, const OptimizerSpec& optimizer, std::uint64_t seed,
                             at::Device device) {
  LayerState state;
  const auto id = static_cast<std::uint32_t>(layer.id);
  for (std::size_t i = 0; i < layer.parameters.size(); ++i) {
    const RandomKey key{seed, RandomPurpose::kInitialWeights, static_cast<std::uint32_t>(i), id};
    at::Tensor parameter = InitialTensor(layer.parameters[i], key, device);
    for (std::size_t s = 0; layer.trainable && s < OptimizerStateNames(optimizer).size(); ++s) {
      state.optimizer_state.push_back(at::zeros_like(parameter));
    }
    state.parameters.push_back(parameter.requires_grad_(layer.trainable));
  }
  for (const TensorSpec& buffer : layer.buffers) {
    state.buffers.push_back(InitialTensor(buffer, RandomKey{}, device));
  }
  return state;
}

void ApplyUpdate(const OptimizerSpec& optimizer, double learning_rate,
                 std::span<const at::Tensor> gradients, LayerState& state) {
  const at::NoGradGuard no_grad;
  // A version counter of its own: under the asynchronous policy another subnet may hold the old
  // weights for its backward, and that control must run to its end.
  std::vector<at::Tensor> parameters;
  parameters.reserve(state.parameters.size());
  for (const at::Tensor& parameter : state.parameters) {
    parameters.push_back(parameter.variable_data());
  }
  if (optimizer.kind == OptimizerKind::kSgd) {
    ApplySgd(optimizer, learning_rate, gradients, parameters, state);
  } else {
    ApplyAdam(optimizer, learning_rate, gradients, parameters, state);
  }
  ++state.updates;
}

LayerRead ReadVersion(const Layer& layer, const LayerState& state, std::int64_t seq) {
  const LayerRead newest{state.version, state.parameters, state.written};
  const auto is_visible = [&](const LayerRead& read) {
    return read.version < std::max<std::int64_t>(seq - layer.delay, 0);
  };
  if (layer.delay == 0 || is_visible(newest)) return newest;
  const auto found = std::find_if(state.earlier.rbegin(), state.earlier.rend(), is_visible);
  if (found != state.earlier.rend()) return *found;
  return state.earlier.empty() ? newest : state.earlier.front();
}

LayerState CopyForUpdate(const LayerState& state) {
  LayerState next;
  for (const at::Tensor& parameter : state.parameters) {
    next.parameters.push_back(parameter.detach().clone().requires_grad_());
  }
  next.buffers = state.buffers;
  next.optimizer_state = state.optimizer_state;
  next.updates = state.updates;
  next.version = state.version;
  next.written = state.written;
  return next;
}

void PublishVersion(const Layer& layer, LayerState next, LayerState& state) {
  next.earlier = std::move(state.earlier);
  next.earlier.push_back({state.version, std::move(state.parameters), std::move(state.written)});
  DropUnread(layer, next);
  state = std::move(next);
}

void AddReadVersion(const Layer& layer, LayerRead read, LayerState& state) {
  const auto later = std::ranges::find_if(
      state.earlier, [&](const LayerRead& other) { return other.version >= read.version; });
  const bool is_known = read.version == state.version ||
                        (later != state.earlier.end() && later->version == read.version);
  if (is_known) return;
  if (read.version < state.version) {
    state.earlier.insert(later, std::move(read));
  } else {
    state.earlier.push_back({state.version, std::move(state.parameters), std::move(state.written)});
    state.version = read.version;
    state.parameters = std::move(read.parameters);
    state.written = std::move(read.written);
  }
  DropUnread(layer, state);
}

void AddRunningStatistics(std::span<const std::vector<at::Tensor>> measured, LayerState& state) {
  const at::NoGradGuard no_grad;
  for (const std::vector<at::Tensor>& microbatch : measured) {
    for (std::size_t i = 0; i < state.buffers.size(); ++i) {
      state.buffers[i].mul_(1.0 - kBatchNormMomentum).add_(microbatch[i], kBatchNormMomentum);
    }
  }
}

PendingNamedDigest TakeWeightsDigest(const Layer& layer, const LayerState& state) {
  PendingNamedDigest digest(state.parameters.size() + state.buffers.size());
  for (std::size_t i = 0; i < layer.parameters.size(); ++i) {
    digest.Take(layer.parameters[i].name, state.parameters[i]);
  }
  for (std::size_t i = 0; i < layer.buffers.size(); ++i) {
    digest.Take(layer.buffers[i].name, state.buffers[i]);
  }
  return digest;
}

PendingNamedDigest TakeOptimizerStateDigest(const Layer& layer, const OptimizerSpec& optimizer,
                                            const LayerState& state) {
  PendingNamedDigest digest(state.optimizer_state.size());
  const std::vector<const char*> names = OptimizerStateNames(optimizer);
  for (std::size_t i = 0; i < state.optimizer_state.size(); ++i) {
    const std::string& parameter = layer.parameters[i / names.size()].name;
    digest.Take(parameter + "." + names[i % names.size()], state.optimizer_state[i]);
  }
  digest.Take("step", DigestTensor(TensorView{DType::kInt64, {}, &state.updates}));
  return digest;
}

PendingNamedDigest TakeGradientsDigest(const Layer& layer, std::span<const at::Tensor> gradients) {
  PendingNamedDigest digest(gradients.size());
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    digest.Take(layer.parameters[i].name, gradients[i]);
  }
  return digest;
}

}  // namespace verbatim
