#include "trainer/layer_file.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "store/layer_metadata.h"

namespace verbatim {
namespace {

at::Tensor CopyOf(const at::Tensor& tensor) {
  return tensor.detach().to(at::kCPU, tensor.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
}

std::vector<at::Tensor> CopiesOf(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> copies;
  copies.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) copies.push_back(CopyOf(tensor));
  return copies;
}

/// On the CPU: the same bytes, where they are there already.
std::vector<at::Tensor> OnHost(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> shared;
  shared.reserve(tensors.size());
  for (const at::Tensor& tensor : tensors) shared.push_back(tensor.detach().to(at::kCPU));
  return shared;
}

std::size_t BytesOf(const std::vector<at::Tensor>& tensors) {
  std::size_t bytes = 0;
  for (const at::Tensor& tensor : tensors) bytes += tensor.nbytes();
  return bytes;
}

LayerMetadata MetadataOf(const Layer& layer, const OptimizerSpec& optimizer, std::int64_t version) {
  LayerMetadata metadata;
  metadata.layer = layer.name;
  metadata.version = version;
  for (const TensorSpec& parameter : layer.parameters)
    metadata.parameters.push_back(parameter.name);
  for (const TensorSpec& buffer : layer.buffers) metadata.buffers.push_back(buffer.name);
  metadata.has_step = layer.IsVersioned();
  if (!layer.IsVersioned()) return metadata;
  for (const char* const name : OptimizerStateNames(optimizer)) metadata.optimizer.push_back(name);
  return metadata;
}

StoredTensor Stored(std::string name, const at::Tensor& tensor) {
  VERBATIM_CHECK(tensor.is_cpu() && tensor.is_contiguous() && tensor.scalar_type() == at::kFloat,
                 "{} is no host tensor", name);
  const at::IntArrayRef sizes = tensor.sizes();
  return {std::move(name),
          DType::kFloat32,
          {sizes.begin(), sizes.end()},
          {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()}};
}

/// Takes a layer's tensors out of a file; the first error stays.
class StateReader {
 public:
  StateReader(const StoredTensors& stored, at::Device device, const std::string& source)
      : stored_(stored), device_(device), source_(source) {}

  Result<LayerState> Read(const Layer& layer, const LayerMetadata& metadata) {
    LayerState state;
    state.version = metadata.version;
    state.parameters = Parameters(layer, [](const std::string& name) { return name; });
    for (const TensorSpec& buffer : layer.buffers) {
      state.buffers.push_back(Tensor(buffer.name, buffer.shape));
    }
    for (const TensorSpec& parameter : layer.parameters) {
      for (const std::string& name : metadata.optimizer) {
        state.optimizer_state.push_back(
            Tensor(OptimizerTensorName(parameter.name, name), parameter.shape));
      }
    }
    if (metadata.has_step) state.updates = Step();
    for (std::size_t i = 0; i < metadata.earlier.size(); ++i) {
      const auto name_of = [&](const std::string& name) { return EarlierTensorName(i, name); };
      state.earlier.push_back({metadata.earlier[i], Parameters(layer, name_of), nullptr});
    }
    if (stored_.tensors.size() != read_) Refuse("it holds other tensors than its layer has");
    if (error_) return tl::unexpected(*std::move(error_));
    return state;
  }

 private:
  template <typename NameOf>
  std::vector<at::Tensor> Parameters(const Layer& layer, const NameOf& name_of) {
    std::vector<at::Tensor> parameters;
    for (const TensorSpec& spec : layer.parameters) {
      parameters.push_back(Tensor(name_of(spec.name), spec.shape).requires_grad_(layer.trainable));
    }
    return parameters;
  }

  at::Tensor Tensor(const std::string& name, const std::vector<std::int64_t>& shape) {
    at::Tensor tensor = at::empty(shape, at::TensorOptions().dtype(at::kFloat));
    const StoredTensor* const found = Find(name, DType::kFloat32, shape);
    if (found && tensor.nbytes() > 0) {
      std::memcpy(tensor.mutable_data_ptr(), found->data.data(), tensor.nbytes());
    }
    return tensor.to(device_);
  }

  std::int64_t Step() {
    std::int64_t step = 0;
    const StoredTensor* const found = Find(kStepTensor, DType::kInt64, {});
    if (found) std::memcpy(&step, found->data.data(), sizeof(step));
    if (step < 0) Refuse("its step is below zero");
    return step;
  }

  const StoredTensor* Find(const std::string& name, DType dtype,
                           const std::vector<std::int64_t>& shape) {
    const StoredTensor* const found = stored_.Find(name);
    ++read_;
    if (found && found->dtype == dtype && found->shape == shape) return found;
    Refuse(
        fmt::format("its tensor {} is {}", name, found ? "of another shape or type" : "missing"));
    return nullptr;
  }

  void Refuse(const std::string& what) {
    if (error_) return;
    error_ = Error{ErrorKind::kBadInput,
                   fmt::format("the checkpoint file {} does not fit the spec: {}", source_, what),
                   "use another checkpoint"};
  }

  const StoredTensors& stored_;
  const at::Device device_;
  const std::string& source_;
  std::size_t read_ = 0;
  std::optional<Error> error_;
};

bool AreSoundEarlier(const Layer& layer, const LayerMetadata& metadata) {
  const std::vector<std::int64_t>& earlier = metadata.earlier;
  return std::ssize(earlier) <= layer.delay &&
         std::adjacent_find(earlier.begin(), earlier.end(), std::greater_equal<>()) ==
             earlier.end() &&
         (earlier.empty() || earlier.back() < metadata.version);
}

}  // namespace

LayerState CopyToHost(const Layer& layer, const LayerState& state) {
  Synchronize(state.written);
  LayerState copy;
  copy.parameters = layer.delay > 0 ? OnHost(state.parameters) : CopiesOf(state.parameters);
  copy.buffers = CopiesOf(state.buffers);
  copy.optimizer_state = CopiesOf(state.optimizer_state);
  copy.updates = state.updates;
  copy.version = state.version;
  for (const LayerRead& read : state.earlier) {
    Synchronize(read.written);
    copy.earlier.push_back({read.version, OnHost(read.parameters), nullptr});
  }
  return copy;
}

LayerState ShareOnHost(const LayerState& state) {
  Synchronize(state.written);
  LayerState shared;
  shared.parameters = OnHost(state.parameters);
  shared.buffers = OnHost(state.buffers);
  shared.optimizer_state = OnHost(state.optimizer_state);
  shared.updates = state.updates;
  shared.version = state.version;
  for (const LayerRead& read : state.earlier) {
    Synchronize(read.written);
    shared.earlier.push_back({read.version, OnHost(read.parameters), nullptr});
  }
  return shared;
}

void DropTensors(LayerState& state) {
  state.parameters.clear();
  state.buffers.clear();
  state.optimizer_state.clear();
  state.earlier.clear();
}

std::size_t BytesOf(const LayerState& state) {
  std::size_t bytes =
      BytesOf(state.parameters) + BytesOf(state.buffers) + BytesOf(state.optimizer_state);
  for (const LayerRead& read : state.earlier) bytes += BytesOf(read.parameters);
  return bytes;
}

StoredTensors DescribeLayerState(const Layer& layer, const OptimizerSpec& optimizer,
                                 const LayerState& state) {
  LayerMetadata metadata = MetadataOf(layer, optimizer, state.version);
  for (const LayerRead& read : state.earlier) metadata.earlier.push_back(read.version);
  std::vector<at::Tensor> tensors = state.parameters;
  tensors.insert(tensors.end(), state.buffers.begin(), state.buffers.end());
  tensors.insert(tensors.end(), state.optimizer_state.begin(), state.optimizer_state.end());
  const std::size_t before_step = tensors.size();
  for (const LayerRead& read : state.earlier) {
    tensors.insert(tensors.end(), read.parameters.begin(), read.parameters.end());
  }
  StoredTensors stored;
  std::size_t next = 0;
  for (std::string& name : TensorNames(metadata)) {
    if (stored.tensors.size() == before_step && metadata.has_step) {
      const auto* const step = reinterpret_cast<const char*>(&state.updates);
      stored.tensors.push_back({std::move(name), DType::kInt64, {}, {step, sizeof(state.updates)}});
    } else {
      stored.tensors.push_back(Stored(std::move(name), tensors.at(next++)));
    }
  }
  VERBATIM_CHECK(next == tensors.size(), "{} of {} tensors have names", next, tensors.size());
  stored.metadata = EncodeLayerMetadata(metadata);
  return stored;
}

Result<LayerState> RestoreLayerState(const Layer& layer, const OptimizerSpec& optimizer,
                                     std::int64_t version, const StoredTensors& stored,
                                     at::Device device, const std::string& source) {
  ASSIGN_OR_RETURN(const LayerMetadata metadata, ReadLayerMetadata(stored, source));
  LayerMetadata expected = MetadataOf(layer, optimizer, version);
  expected.earlier = metadata.earlier;
  if (metadata != expected || !AreSoundEarlier(layer, metadata)) {
    return BadInput(fmt::format("the checkpoint file {} holds {} at version {}, where the record "
                                "and its spec have {} at version {}",
                                source, metadata.layer, metadata.version, layer.name, version),
                    "use another checkpoint");
  }
  const at::NoGradGuard no_grad;
  return StateReader(stored, device, source).Read(layer, metadata);
}

}  // namespace verbatim
