#include "trainer/layer_message.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "trainer/tensor_message.h"

namespace verbatim {
namespace {

void PutAll(const std::vector<at::Tensor>& tensors, const Mark& written, TensorWriter& writer) {
  for (const at::Tensor& tensor : tensors) writer.Tensor({tensor, written});
}

Result<std::vector<at::Tensor>> TakeParameters(const Layer& layer, TensorReader& reader) {
  std::vector<at::Tensor> parameters;
  for (const TensorSpec& spec : layer.parameters) {
    ASSIGN_OR_RETURN(at::Tensor tensor, reader.Tensor(at::kFloat, spec.shape));
    parameters.push_back(tensor.requires_grad_(layer.trainable));
  }
  return parameters;
}

/// What follows the parameters in a whole state.
Status TakeRest(const Layer& layer, const OptimizerSpec& optimizer, TensorReader& reader,
                LayerState& state) {
  for (const TensorSpec& spec : layer.buffers) {
    ASSIGN_OR_RETURN(at::Tensor buffer, reader.Tensor(at::kFloat, spec.shape));
    state.buffers.push_back(std::move(buffer));
  }
  const std::size_t kinds = layer.trainable ? OptimizerStateNames(optimizer).size() : 0;
  for (const TensorSpec& spec : layer.parameters) {
    for (std::size_t i = 0; i < kinds; ++i) {
      ASSIGN_OR_RETURN(at::Tensor tensor, reader.Tensor(at::kFloat, spec.shape));
      state.optimizer_state.push_back(std::move(tensor));
    }
  }
  ASSIGN_OR_RETURN(const std::vector<std::int64_t> earlier, reader.Numbers());
  for (const std::int64_t version : earlier) {
    ASSIGN_OR_RETURN(std::vector<at::Tensor> parameters, TakeParameters(layer, reader));
    state.earlier.push_back({version, std::move(parameters), nullptr});
  }
  return {};
}

}  // namespace

void PutState(const LayerState& state, Message& message, TensorWriter& writer) {
  message.version = state.version;
  message.updates = state.updates;
  PutAll(state.parameters, state.written, writer);
  PutAll(state.buffers, state.written, writer);
  PutAll(state.optimizer_state, state.written, writer);
  std::vector<std::int64_t> earlier;
  for (const LayerRead& read : state.earlier) earlier.push_back(read.version);
  writer.Numbers(earlier);
  for (const LayerRead& read : state.earlier) PutAll(read.parameters, read.written, writer);
}

void PutRead(const LayerRead& read, Message& message, TensorWriter& writer) {
  message.version = read.version;
  PutAll(read.parameters, read.written, writer);
}

Result<ReceivedLayer> TakeLayer(const Message& message, const Layer& layer,
                                const OptimizerSpec& optimizer, TensorReader reader) {
  ReceivedLayer received;
  received.state.version = message.version;
  received.state.updates = message.updates;
  ASSIGN_OR_RETURN(received.state.parameters, TakeParameters(layer, reader));
  received.is_whole = reader.left() > 0;
  if (!received.is_whole) return received;
  RETURN_IF_ERROR(TakeRest(layer, optimizer, reader, received.state));
  RETURN_IF_ERROR(reader.End());
  return received;
}

void SetWritten(const Mark& written, LayerState& state) {
  state.written = written;
  for (LayerRead& read : state.earlier) read.written = written;
}

void Place(const Layer& layer, ReceivedLayer received, LayerState& state) {
  if (received.is_whole) {
    state = std::move(received.state);
  } else {
    AddReadVersion(layer,
                   {received.state.version, std::move(received.state.parameters),
                    std::move(received.state.written)},
                   state);
  }
}

void DropSent(const Layer& layer, LayerState& state) {
  state.buffers.clear();
  state.optimizer_state.clear();
  if (layer.delay > 0) return;
  VERBATIM_CHECK(state.earlier.empty());
  state.parameters.clear();
}

}  // namespace verbatim
