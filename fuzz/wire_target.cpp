#include "base/check.h"
#include "base/decoder.h"
#include "base/encoding.h"
#include "fuzz/target.h"
#include "trainer/ranks/wire.h"

namespace verbatim::fuzz {
namespace {

Frame FrameOf(std::string_view bytes) {
  return {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size(), nullptr};
}

SentTensor TensorOf(DType dtype, std::vector<std::int64_t> shape, const std::string& bytes) {
  return {dtype, std::move(shape), FrameOf(bytes).data, bytes.size(), nullptr};
}

}  // namespace

// The input is a list of strings, length and bytes: the header and the tensors' frames.
void RunWire(std::string_view input) {
  Decoder in(input);
  const std::string_view header = in.String();
  std::vector<Frame> frames;
  while (in.left() > 0) frames.push_back(FrameOf(in.String()));
  if (in.failed()) return;
  const auto decoded = DecodeMessage(header, frames);
  if (!decoded) return;
  const Message& message = decoded->message;
  VERBATIM_CHECK(message.tensors.size() == frames.size(), "{} frames", frames.size());
  for (std::size_t i = 0; i < frames.size(); ++i) {
    VERBATIM_CHECK(message.tensors[i].size == frames[i].size, "tensor {}", i);
  }
  VERBATIM_CHECK(EncodeHeader(message, decoded->sequence) == header, "accepted in another form");
}

std::vector<std::string> WireSeeds() {
  const std::string bytes(24, '\x3f');
  const SentTensor floats = TensorOf(DType::kFloat32, {2, 3}, bytes);
  const SentTensor none = TensorOf(DType::kInt64, {4, 0}, "");
  const Task task{TaskKind::kUpdate, 12, 1};
  const Message messages[] = {
      {.kind = MessageKind::kAdmitted, .task = {TaskKind::kForward, 12, 0}},
      {.kind = MessageKind::kTask, .stage = 1, .task = task, .tensors = {floats, none}},
      {.kind = MessageKind::kVersion,
       .stage = 1,
       .task = task,
       .layer = 3,
       .version = 11,
       .updates = 5,
       .tensors = {floats}},
      {.kind = MessageKind::kFinished, .task = {TaskKind::kForward, 12, 0}, .text = "recorded"},
      {.kind = MessageKind::kCapture, .layer = 3, .version = -1},
      {.kind = MessageKind::kAlive},
  };
  std::vector<std::string> seeds;
  for (const Message& message : messages) {
    Encoder out;
    out.String(EncodeHeader(message, seeds.size()));
    for (const SentTensor& tensor : message.tensors) out.String(bytes.substr(0, tensor.size));
    seeds.push_back(out.bytes());
  }
  return seeds;
}

}  // namespace verbatim::fuzz
