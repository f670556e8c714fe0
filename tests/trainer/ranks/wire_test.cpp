#include "trainer/ranks/wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/encoding.h"
#include "base/hex.h"
#include "tests/trainer/ranks/mesh.h"
#include "trainer/ranks/wire_format.h"

namespace verbatim {
namespace {

using test::BytesTensor;
using ::testing::HasSubstr;

std::string HexOf(const std::string& bytes) {
  return BytesToHex({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

std::vector<Frame> FramesOf(const Message& message) {
  std::vector<Frame> frames;
  for (const SentTensor& tensor : message.tensors) {
    frames.push_back({tensor.data, tensor.size, tensor.owner});
  }
  return frames;
}

SentTensor Floats(std::vector<std::int64_t> shape, std::size_t count) {
  auto values = std::make_shared<std::vector<float>>(count, 0.5f);
  const auto* data = reinterpret_cast<const std::byte*>(values->data());
  return {DType::kFloat32, std::move(shape), data, 4 * count, values};
}

/// One message of each kind, with every field that it may have.
std::vector<Message> Samples() {
  const Task task{TaskKind::kUpdate, 1LL << 40, 7};
  const std::vector<SentTensor> tensors = {Floats({2, 3}, 6), Floats({}, 1), Floats({0, 5}, 0)};
  std::vector<Message> samples = {
      {.kind = MessageKind::kAdmitted, .task = {TaskKind::kForward, 5, 0}},
      {.kind = MessageKind::kTask, .stage = 3, .task = task, .tensors = tensors},
      {.kind = MessageKind::kVersion,
       .stage = 3,
       .task = task,
       .layer = 12,
       .version = -1,
       .updates = 9,
       .tensors = tensors},
      {.kind = MessageKind::kFinished, .task = {TaskKind::kForward, 5, 0}, .text = "recorded"},
      {.kind = MessageKind::kLayer, .layer = 0, .version = 4, .tensors = tensors},
      {.kind = MessageKind::kCapture, .task = {TaskKind::kForward, 5, 0}, .layer = 0, .version = 4},
      {.kind = MessageKind::kStop},
      {.kind = MessageKind::kEnd, .text = "{}"},
      {.kind = MessageKind::kDone},
      {.kind = MessageKind::kAbort, .text = "why"},
      {.kind = MessageKind::kAlive},
      {.kind = MessageKind::kHello},
      {.kind = MessageKind::kClock, .text = "17"},
      {.kind = MessageKind::kLeaving},
      {.kind = MessageKind::kHeardAll},
      {.kind = MessageKind::kInvite, .text = "nccl:00ff"},
  };
  return samples;
}

void ExpectEqual(const Message& a, const Message& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.stage, b.stage);
  EXPECT_EQ(a.task, b.task);
  EXPECT_EQ(a.layer, b.layer);
  EXPECT_EQ(a.version, b.version);
  EXPECT_EQ(a.updates, b.updates);
  EXPECT_EQ(a.text, b.text);
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (std::size_t i = 0; i < a.tensors.size(); ++i) {
    EXPECT_TRUE(test::IsEqual(a.tensors[i], b.tensors[i])) << i;
  }
}

TEST(Wire, GivesBackEachKindOfMessage) {
  const auto samples = Samples();
  ASSERT_EQ(samples.size(), wire::kKinds.size());
  for (const Message& message : samples) {
    const auto decoded = DecodeMessage(EncodeHeader(message, 77), FramesOf(message));
    ASSERT_TRUE(decoded.has_value()) << decoded.error().message;
    EXPECT_EQ(decoded->sequence, 77u);
    ExpectEqual(decoded->message, message);
  }
}

// docs/wire.md, byte for byte.
TEST(Wire, HasTheseBytes) {
  Message message{.kind = MessageKind::kVersion, .stage = 1, .layer = 258, .version = -1};
  message.task = {TaskKind::kUpdate, 3, 2};
  message.updates = 4;
  message.tensors = {Floats({2, 1}, 2)};
  EXPECT_EQ(HexOf(EncodeHeader(message, 5)),
            "56425452"
            "01000000"
            "0500000000000000"
            "03"
            "02"
            "0100000000000000"
            "0300000000000000"
            "0200000000000000"
            "0201000000000000"
            "ffffffffffffffff"
            "0400000000000000"
            "01000000"
            "01"
            "02"
            "0200000000000000"
            "0100000000000000"
            "00000000");
  EXPECT_EQ(HexOf(EncodeHeader({.kind = MessageKind::kAbort, .text = "no"}, 0)),
            "56425452"
            "01000000"
            "0000000000000000"
            "0a"
            "00"
            "0000000000000000"
            "0000000000000000"
            "0000000000000000"
            "ffffffffffffffff"
            "ffffffffffffffff"
            "0000000000000000"
            "00000000"
            "02000000"
            "6e6f");
  EXPECT_EQ(EncodeHeader({.kind = MessageKind::kAlive}, 0).size(), wire::kFixedBytes);
}

TEST(Wire, RefusesAHeaderOfAnyOtherLength) {
  for (const Message& message : Samples()) {
    const std::string header = EncodeHeader(message, 1);
    for (std::size_t size = 0; size < header.size(); ++size) {
      const auto decoded =
          DecodeMessage(std::string_view(header).substr(0, size), FramesOf(message));
      ASSERT_FALSE(decoded.has_value()) << size << " bytes";
      EXPECT_EQ(decoded.error().kind, ErrorKind::kBadInput);
    }
    EXPECT_FALSE(DecodeMessage(header + '\0', FramesOf(message)).has_value());
  }
}

/// A header as EncodeHeader gives it, of any numbers.
struct RawHeader {
  std::string magic = "VBTR";
  std::uint32_t format = 1;
  std::uint8_t kind = 3;  // kVersion: it has all fields but a text
  std::uint8_t task = 0;
  std::int64_t stage = 1, seq = 2, microbatch = 3, layer = 4, version = 5, updates = 6;
  std::uint32_t tensors = 1;
  std::uint8_t dtype = 1;
  std::vector<std::int64_t> shape = {2};
  std::string text;

  std::string Bytes() const {
    Encoder out;
    out.Bytes(magic.data(), magic.size()).U32(format).U64(0).U8(kind).U8(task).I64(stage);
    out.I64(seq).I64(microbatch).I64(layer).I64(version).I64(updates).U32(tensors);
    for (std::uint32_t i = 0; i < tensors && i < 2; ++i) {
      out.U8(dtype).U8(static_cast<std::uint8_t>(shape.size()));
      for (const std::int64_t dimension : shape) out.I64(dimension);
    }
    return out.String(text).bytes();
  }
};

struct BadCase {
  const char* why;
  void (*change)(RawHeader& header);
  std::size_t frame_bytes = 8;
};

TEST(Wire, RefusesEveryFieldOutOfRange) {
  const BadCase cases[] = {
      {"other first bytes", [](RawHeader& h) { h.magic = "VBTM"; }},
      {"version 2, this program's is 1", [](RawHeader& h) { h.format = 2; }},
      {"unknown kind 0", [](RawHeader& h) { h.kind = 0; }},
      {"unknown kind 17", [](RawHeader& h) { h.kind = 17; }},
      {"unknown kind 255", [](RawHeader& h) { h.kind = 255; }},
      {"wrong task", [](RawHeader& h) { h.task = 3; }},
      {"wrong stage", [](RawHeader& h) { h.stage = -1; }},
      {"wrong stage", [](RawHeader& h) { h.stage = 1LL << 31; }},
      {"wrong stage", [](RawHeader& h) { h.stage = 1LL << 32; }},
      {"wrong subnet", [](RawHeader& h) { h.seq = -1; }},
      {"wrong micro-batch", [](RawHeader& h) { h.microbatch = -1; }},
      {"wrong micro-batch", [](RawHeader& h) { h.microbatch = 1LL << 33; }},
      {"wrong layer", [](RawHeader& h) { h.layer = -1; }},
      {"wrong layer", [](RawHeader& h) { h.layer = 1LL << 31; }},
      {"wrong version", [](RawHeader& h) { h.version = -2; }},
      {"wrong updates", [](RawHeader& h) { h.updates = -1; }},
      {"wrong text", [](RawHeader& h) { h.text = "x"; }},
      {"1 frames for 2 tensors", [](RawHeader& h) { h.tensors = 2; }},
      {"1 frames for 0 tensors", [](RawHeader& h) { h.tensors = 0; }},
      {"frames for 4294967295 tensors", [](RawHeader& h) { h.tensors = 0xffffffff; }},
      {"impossible shape or type", [](RawHeader& h) { h.dtype = 0; }},
      {"impossible shape or type", [](RawHeader& h) { h.dtype = 99; }},
      {"impossible shape or type", [](RawHeader& h) { h.shape = {-2}; }},
      {"impossible shape or type",
       [](RawHeader& h) {
         h.shape = {1LL << 32, 1LL << 32};
       }},
      {"8 bytes instead of 12", [](RawHeader& h) { h.shape = {3}; }},
      {"4 bytes instead of 8", [](RawHeader&) {}, 4},
      {"17 dimensions", [](RawHeader& h) { h.shape.assign(17, 1); }},
  };
  const SentTensor tensor = Floats({2}, 2);
  for (const BadCase& bad : cases) {
    RawHeader header;
    bad.change(header);
    const auto decoded =
        DecodeMessage(header.Bytes(), {{tensor.data, bad.frame_bytes, tensor.owner}});
    ASSERT_FALSE(decoded.has_value()) << bad.why;
    EXPECT_THAT(decoded.error().message, HasSubstr(bad.why));
  }
  EXPECT_TRUE(DecodeMessage(RawHeader().Bytes(), {{tensor.data, 8, tensor.owner}}).has_value());
}

TEST(Wire, RefusesFieldsThatAKindDoesNotHave) {
  const std::vector<void (*)(RawHeader&)> fields = {
      [](RawHeader& h) { h.task = 1; },    [](RawHeader& h) { h.stage = 1; },
      [](RawHeader& h) { h.seq = 1; },     [](RawHeader& h) { h.microbatch = 1; },
      [](RawHeader& h) { h.layer = 1; },   [](RawHeader& h) { h.version = 1; },
      [](RawHeader& h) { h.updates = 1; }, [](RawHeader& h) { h.text = "x"; },
  };
  RawHeader plain;
  plain.kind = static_cast<std::uint8_t>(MessageKind::kStop);
  plain.stage = plain.seq = plain.microbatch = plain.updates = 0;
  plain.layer = plain.version = -1;
  plain.tensors = 0;
  ASSERT_TRUE(DecodeMessage(plain.Bytes(), {}).has_value());
  for (const auto change : fields) {
    RawHeader header = plain;
    change(header);
    EXPECT_FALSE(DecodeMessage(header.Bytes(), {}).has_value()) << HexOf(header.Bytes());
  }
  plain.tensors = 1;
  const SentTensor tensor = Floats({2}, 2);
  EXPECT_FALSE(DecodeMessage(plain.Bytes(), FramesOf({.tensors = {tensor}})).has_value());
}

TEST(Wire, SharesTheFramesOfTensors) {
  Message message{.kind = MessageKind::kTask, .tensors = {BytesTensor(100, 1)}};
  const auto* data = message.tensors[0].data;
  const std::weak_ptr<const void> owner = message.tensors[0].owner;
  auto decoded = DecodeMessage(EncodeHeader(message, 1), FramesOf(message));
  message.tensors.clear();
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->message.tensors[0].data, data);
  EXPECT_FALSE(owner.expired());
  decoded->message.tensors.clear();
  EXPECT_TRUE(owner.expired());
}

TEST(WireDeathTest, EncodesNoMessageThatNobodyWouldTake) {
  EXPECT_DEATH(EncodeHeader({.kind = MessageKind::kStop, .text = "x"}, 0), "kind 7: text");
  EXPECT_DEATH(EncodeHeader({.kind = static_cast<MessageKind>(99)}, 0), "kind 99");
  EXPECT_DEATH(EncodeHeader({.kind = MessageKind::kLayer}, 0), "kind 5: layer");
  Message short_tensor{.kind = MessageKind::kTask, .tensors = {BytesTensor(8, 1)}};
  short_tensor.tensors[0].size = 7;
  EXPECT_DEATH(EncodeHeader(short_tensor, 0), "a tensor of 7 bytes");
}

}  // namespace
}  // namespace verbatim
