// Messages between ranks as bytes, and back: a header, and one frame per tensor with its bytes as
// they are. Byte for byte in docs/wire.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "trainer/ranks/message.h"

namespace verbatim {

/// The header frame. The frames after it are the tensors' bytes, in order. `message` must have no
/// more than its kind's fields and the limits of trainer/ranks/wire_format.h.
std::string EncodeHeader(const Message& message, std::uint64_t sequence);

/// One frame of a received message, shared like SentTensor.
struct Frame {
  const std::byte* data = nullptr;
  std::size_t size = 0;
  std::shared_ptr<const void> owner;
};

struct DecodedMessage {
  std::uint64_t sequence = 0;
  Message message;  ///< its tensors share the frames
};

/// kBadInput, saying what is wrong, where header and frames are not what EncodeHeader gives for
/// some message: another magic or version, an unknown kind, fields that the kind has not, values
/// out of range, tensors whose frames are missing, left over or of another size.
Result<DecodedMessage> DecodeMessage(std::string_view header, std::vector<Frame> frames);

}  // namespace verbatim
