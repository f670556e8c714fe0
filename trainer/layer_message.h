// A layer's version as it travels from one rank to another, and what it becomes where it arrives.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "base/status.h"
#include "supernet/search_space.h"
#include "supernet/spec.h"
#include "trainer/layer_state.h"
#include "trainer/ranks/message.h"
#include "trainer/tensor_message.h"

namespace verbatim {

/// A version that has arrived.
struct ReceivedLayer {
  LayerState state;
  bool is_whole = false;  ///< else it has the parameters alone, to be read
};

/// Sets the message's version and puts all of a state into it, or beside it. Its tensors may not be
/// changed any more.
void PutState(const LayerState& state, Message& message, TensorWriter& writer);
/// Likewise only what a subnet reads of one of its versions.
void PutRead(const LayerRead& read, Message& message, TensorWriter& writer);

/// kBadInput where the message is none of this layer. `reader` is at its begin.
Result<ReceivedLayer> TakeLayer(const Message& message, const Layer& layer,
                                const OptimizerSpec& optimizer, TensorReader reader);

/// When all of a state that has arrived is there.
void SetWritten(const Mark& written, LayerState& state);

/// Puts a version in place: a whole one becomes the state. Of a layer with a delay, parameters are
/// added to the versions that can be read (AddReadVersion).
void Place(const Layer& layer, ReceivedLayer received, LayerState& state);

/// A version whose subnet is on another rank has been sent there whole: drops what nobody here
/// uses any more. Of a layer with a delay, parameters may still be read.
void DropSent(const Layer& layer, LayerState& state);

}  // namespace verbatim
