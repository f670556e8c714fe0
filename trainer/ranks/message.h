// What ranks send each other, as values. Their bytes on the wire: trainer/ranks/wire.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "schedule/task.h"

namespace verbatim {

/// A tensor's bytes: contiguous, row-major, little-endian, on the host. Shares them with whoever
/// else holds `owner`: nobody may change them any more.
struct SentTensor {
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> shape;  ///< none negative
  const std::byte* data = nullptr;  ///< TensorBytes(dtype, shape) of them; any alignment
  std::size_t size = 0;             ///< in bytes
  std::shared_ptr<const void> owner;
};

/// The values are part of the wire format: never renumber.
enum class MessageKind : std::uint8_t {
  kAdmitted = 1,  ///< rank 0 to all: subnet `task.seq` is in flight
  kTask = 2,      ///< inputs of `task` on `stage`: `tensors`
  kVersion = 3,   ///< a layer's version for subnet `task.seq` on `stage`: `layer`, `version`, …
  kFinished = 4,  ///< to rank 0: what the sender recorded of subnet `task.seq`: `text`
  kLayer = 5,     ///< a layer's state that no subnet waits for: at a run's begin, at its end, …
  kCapture = 6,   ///< to rank 0: a layer as the subnets below `task.seq` left it
  kStop = 7,      ///< to rank 0: somebody asked the sender's process to stop
  kEnd = 8,       ///< rank 0 to all: every subnet is finished; `text`: how the run ended (JSON)
  kDone = 9,      ///< to rank 0: the sender has sent everything; its answer: the receiver may leave
  kAbort = 10,    ///< to all: the sender has failed; `text`: why
  kAlive = 11,    ///< the network's own: the sender is there
  kHello = 12,    ///< the network's own: the first message on a connection
  kClock = 13,    ///< to rank 0: what its clock says; its answer, in `text`: nanoseconds, decimal
  kLeaving = 14,  ///< the network's own: nothing more comes of the sender
  kHeardAll = 15,  ///< the network's own: the answer to that
  kInvite = 16,    ///< what opens the channels from the sender's GPUs to the receiver's: `text`
};

/// Fields that a kind does not name are zero, and are checked to be.
struct Message {
  MessageKind kind = MessageKind::kAlive;
  int stage = 0;
  Task task;                  ///< its kind says for kVersion which access: see Delivery
  int layer = -1;             ///< kVersion, kLayer, kCapture
  std::int64_t version = -1;  ///< likewise: seq of the subnet that wrote it
  std::int64_t updates = 0;   ///< likewise: LayerState::updates
  std::vector<SentTensor> tensors;
  std::string text;
};

}  // namespace verbatim
