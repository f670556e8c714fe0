#include "trainer/ranks/wire.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "base/check.h"
#include "base/decoder.h"
#include "base/encoding.h"
#include "trainer/ranks/wire_format.h"

namespace verbatim {
namespace {

using wire::KindFields;

const KindFields* FindKind(std::uint8_t number) {
  for (const KindFields& kind : wire::kKinds) {
    if (number == static_cast<std::uint8_t>(kind.kind)) return &kind;
  }
  return nullptr;
}

/// The first field that a message of this kind may not have, or that is out of range; null where
/// all is well. Encoder and decoder ask it.
const char* WrongField(const Message& message, unsigned fields) {
  const Task& task = message.task;
  const bool has_task = (fields & wire::kTask) != 0;
  const bool has_layer = (fields & wire::kLayer) != 0;
  if (task.seq < 0 || ((fields & wire::kSubnet) == 0 && task.seq != 0)) return "subnet";
  if (message.stage < 0 || (!has_task && message.stage != 0)) return "stage";
  if (task.microbatch < 0 || (!has_task && task.microbatch != 0)) return "micro-batch";
  if (task.kind > TaskKind::kUpdate || (!has_task && task.kind != TaskKind::kForward)) {
    return "task";
  }
  if (has_layer ? message.layer < 0 : message.layer != -1) return "layer";
  if (has_layer ? message.version < -1 : message.version != -1) return "version";
  if (has_layer ? message.updates < 0 : message.updates != 0) return "updates";
  if ((fields & wire::kTensors) == 0 && !message.tensors.empty()) return "tensors";
  if ((fields & wire::kText) == 0 && !message.text.empty()) return "text";
  return nullptr;
}

void EncodeShape(const SentTensor& tensor, Encoder& out) {
  std::size_t bytes = 0;
  VERBATIM_CHECK(tensor.shape.size() <= wire::kDimensionsMax, "{} dimensions", tensor.shape.size());
  VERBATIM_CHECK(TensorBytes(tensor.dtype, tensor.shape.data(), tensor.shape.size(), &bytes) &&
                     bytes == tensor.size,
                 "a tensor of {} bytes", tensor.size);
  out.U8(static_cast<std::uint8_t>(tensor.dtype));
  out.U8(static_cast<std::uint8_t>(tensor.shape.size()));
  for (const std::int64_t dimension : tensor.shape) out.I64(dimension);
}

/// Fills `tensor` from its shape in the header and its bytes. What is wrong with it, or empty.
std::string DecodeTensor(Decoder& in, Frame frame, SentTensor& tensor) {
  tensor.dtype = static_cast<DType>(in.U8());
  const std::size_t dimensions = in.U8();
  if (dimensions > wire::kDimensionsMax) return fmt::format("{} dimensions", dimensions);
  tensor.shape.resize(dimensions);
  for (std::int64_t& dimension : tensor.shape) dimension = in.I64();
  if (in.failed()) return "no shape";
  std::size_t bytes = 0;
  if (!TensorBytes(tensor.dtype, tensor.shape.data(), dimensions, &bytes)) {
    return "an impossible shape or type";
  }
  if (bytes != frame.size) return fmt::format("{} bytes instead of {}", frame.size, bytes);
  tensor.data = frame.data;
  tensor.size = frame.size;
  tensor.owner = std::move(frame.owner);
  return "";
}

/// From a field of 64 bits, in which -1 is none; out of range where it is no int.
int DecodeInt(std::int64_t value) {
  const bool fits = value >= -1 && value <= std::numeric_limits<int>::max();
  return fits ? static_cast<int>(value) : std::numeric_limits<int>::min();
}

void DecodeFields(Decoder& in, Message& message) {
  message.task.kind = static_cast<TaskKind>(in.U8());
  message.stage = DecodeInt(in.I64());
  message.task.seq = in.I64();
  message.task.microbatch = DecodeInt(in.I64());
  message.layer = DecodeInt(in.I64());
  message.version = in.I64();
  message.updates = in.I64();
}

tl::unexpected<Error> NoMessage(std::string why) {
  return BadInput("no message of a rank: " + std::move(why));
}

Status DecodeTensors(Decoder& in, std::vector<Frame> frames, Message& message) {
  const std::size_t count = in.U32();
  if (in.failed()) return NoMessage("a header that is cut short");
  if (count != frames.size() || count > wire::kTensorsMax) {
    return NoMessage(fmt::format("{} frames for {} tensors", frames.size(), count));
  }
  message.tensors.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string wrong = DecodeTensor(in, std::move(frames[i]), message.tensors[i]);
    if (!wrong.empty()) return NoMessage(fmt::format("tensor {} has {}", i, wrong));
  }
  return {};
}

}  // namespace

std::string EncodeHeader(const Message& message, std::uint64_t sequence) {
  const auto number = static_cast<std::uint8_t>(message.kind);
  const KindFields* kind = FindKind(number);
  VERBATIM_CHECK(kind != nullptr, "kind {}", number);
  const char* wrong = WrongField(message, kind->fields);
  VERBATIM_CHECK(wrong == nullptr, "kind {}: {}", number, wrong);
  VERBATIM_CHECK(message.tensors.size() <= wire::kTensorsMax, "{}", message.tensors.size());
  VERBATIM_CHECK(message.text.size() <= wire::kTextBytesMax, "{}", message.text.size());
  Encoder out;
  out.Reserve(wire::kFixedBytes + 32 * message.tensors.size() + message.text.size());
  out.Bytes(wire::kMagic.data(), wire::kMagic.size()).U32(wire::kVersion).U64(sequence);
  out.U8(number).U8(static_cast<std::uint8_t>(message.task.kind));
  out.I64(message.stage).I64(message.task.seq).I64(message.task.microbatch);
  out.I64(message.layer).I64(message.version).I64(message.updates);
  out.U32(static_cast<std::uint32_t>(message.tensors.size()));
  for (const SentTensor& tensor : message.tensors) EncodeShape(tensor, out);
  return out.String(message.text).bytes();
}

Result<DecodedMessage> DecodeMessage(std::string_view header, std::vector<Frame> frames) {
  Decoder in(header);
  if (in.Bytes(wire::kMagic.size()) != wire::kMagic) return NoMessage("other first bytes");
  const std::uint32_t version = in.U32();
  if (!in.failed() && version != wire::kVersion) {
    return NoMessage(fmt::format("version {}, this program's is {}", version, wire::kVersion));
  }
  DecodedMessage decoded;
  Message& message = decoded.message;
  decoded.sequence = in.U64();
  const std::uint8_t number = in.U8();
  DecodeFields(in, message);
  RETURN_IF_ERROR(DecodeTensors(in, std::move(frames), message));
  message.text = in.String();
  if (in.failed() || in.left() != 0) return NoMessage("a header of another length than it says");
  const KindFields* kind = FindKind(number);
  if (kind == nullptr) return NoMessage(fmt::format("unknown kind {}", number));
  message.kind = kind->kind;
  if (const char* wrong = WrongField(message, kind->fields)) {
    return NoMessage(fmt::format("kind {} with a wrong {}", number, wrong));
  }
  if (message.text.size() > wire::kTextBytesMax) return NoMessage("a text too long");
  return decoded;
}

}  // namespace verbatim
