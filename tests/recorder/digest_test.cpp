// Proves that digests are the bytes docs/format.md states: literals for each kind, and a second
// computation straight from the page for the shapes in between.
#include "recorder/digest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tests/recorder/dtype_digests.h"

namespace verbatim {
namespace {

using Shape = std::vector<std::int64_t>;

std::vector<std::uint8_t> Ramp(std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(i % 251);
  return bytes;
}

std::vector<Digest> ChunkDigests(const std::vector<std::uint8_t>& bytes) {
  std::vector<Digest> chunks;
  for (std::size_t begin = 0; begin < bytes.size(); begin += 65536) {
    chunks.push_back(
        DigestBytes(bytes.data() + begin, std::min<std::size_t>(65536, bytes.size() - begin)));
  }
  return chunks;
}

// The page's definition, written out a second time.
Digest TensorByThePage(std::uint32_t dtype, const Shape& shape,
                       const std::vector<std::uint8_t>& bytes) {
  Encoder message;
  message.U32(dtype).U32(static_cast<std::uint32_t>(shape.size()));
  for (std::int64_t dim : shape) message.U64(static_cast<std::uint64_t>(dim));
  for (const Digest& chunk : ChunkDigests(bytes)) message.Bytes(chunk.bytes.data(), 16);
  return DigestBytes(message.bytes().data(), message.bytes().size());
}

TEST(DigestBytes, AreXxh3InCanonicalOrder) {
  const struct {
    std::string bytes;
    const char* hex;
  } kCases[] = {
      {"", "99aa06d3014798d86001c324468d497f"},
      {"abc", "06b05ab6733a618578af5f94892f3950"},
      {std::string(65536, '\0'), "fd5ee061c8433a0f33b202d302b65caa"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(ToHex(DigestBytes(c.bytes.data(), c.bytes.size())), c.hex) << c.bytes.size();
  }
}

TEST(DigestBytes, TakeNullForNothing) {
  EXPECT_EQ(DigestBytes(nullptr, 0), DigestBytes("", 0));
}

TEST(DigestTensor, MatchesTheLiteralsOfTheFormatPage) {
  const float kMatrix[] = {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f};
  const float kScalar[] = {0.5f};
  const auto ramp = Ramp(100000);
  const struct {
    DType dtype;
    Shape shape;
    const void* data;
    const char* hex;
  } kCases[] = {
      {DType::kFloat32, {2, 3}, kMatrix, "00b9fc53f768a0c78b6e0c1057622687"},
      {DType::kFloat32, {}, kScalar, "8c628ad6f47d57679201c1a0e3a9202a"},
      {DType::kInt64, {0}, nullptr, "f6609a823f14cd9f882f8b8e7a36998b"},
      {DType::kUInt8, {100000}, ramp.data(), "6084219344dc82abfb9d9f99a3b959d5"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(ToHex(DigestTensor({c.dtype, c.shape, c.data})), c.hex)
        << "rank " << c.shape.size() << ", dtype " << static_cast<int>(c.dtype);
  }
}

TEST(DigestTensor, OfEveryDtypeIsPinned) {
  EXPECT_EQ(std::size(kDTypeDigests), std::size(kDTypes));
  const auto bytes = Ramp(6 * 16);
  const Shape shape = {2, 3};
  for (const DTypeDigest& c : kDTypeDigests) {
    const auto dtype = DTypeFromName(c.dtype);
    ASSERT_TRUE(dtype) << c.dtype;
    EXPECT_EQ(DTypeName(*dtype), std::string(c.dtype));
    EXPECT_EQ(SizeOf(*dtype), c.element_bytes) << c.dtype;
    EXPECT_EQ(ToHex(DigestTensor({*dtype, shape, bytes.data()})), c.hex) << c.dtype;
  }
  EXPECT_FALSE(DTypeFromName("float128"));
}

TEST(DigestTensor, FollowsThePageAroundEveryChunkBoundary) {
  // 81 chunks no longer fit the buffer on the stack.
  for (std::int64_t size : {0, 1, 65535, 65536, 65537, 131072, 131073, 81 * 65536 - 1}) {
    const auto bytes = Ramp(static_cast<std::size_t>(size));
    for (const Shape& shape : {Shape{size}, Shape{1, size, 1}}) {
      EXPECT_EQ(DigestTensor({DType::kUInt8, shape, bytes.data()}),
                TensorByThePage(7, shape, bytes))
          << size << " bytes, rank " << shape.size();
      EXPECT_EQ(DigestTensorFromChunks(DType::kUInt8, shape, ChunkDigests(bytes)),
                TensorByThePage(7, shape, bytes))
          << size << " bytes, rank " << shape.size();
    }
  }
}

TEST(DigestTensor, TakesAnyRank) {
  const Shape shape(200, 1);
  const std::vector<std::uint8_t> bytes = {7};
  EXPECT_EQ(DigestTensor({DType::kUInt8, shape, bytes.data()}), TensorByThePage(7, shape, bytes));
}

TEST(DigestTensor, DoesNotDependOnAlignment) {
  const auto bytes = Ramp(70000);
  const Shape shape = {70000};
  const Digest expected = DigestTensor({DType::kUInt8, shape, bytes.data()});
  for (std::size_t offset = 1; offset < 16; ++offset) {
    std::vector<std::uint8_t> moved(bytes.size() + offset);
    std::copy(bytes.begin(), bytes.end(), moved.begin() + static_cast<std::ptrdiff_t>(offset));
    EXPECT_EQ(DigestTensor({DType::kUInt8, shape, moved.data() + offset}), expected) << offset;
  }
}

TEST(DigestTensor, TellsDtypeShapeAndEveryBitApart) {
  std::vector<std::uint8_t> bytes(96);
  const auto digest = [&](DType dtype, const Shape& shape) {
    return DigestTensor({dtype, shape, bytes.data()});
  };
  const Digest base = digest(DType::kFloat32, {4, 6});
  EXPECT_NE(digest(DType::kInt32, {4, 6}), base);
  EXPECT_NE(digest(DType::kFloat32, {6, 4}), base);
  EXPECT_NE(digest(DType::kFloat32, {24}), base);
  EXPECT_NE(digest(DType::kFloat32, {4, 6, 1}), base);
  EXPECT_NE(digest(DType::kFloat32, {4, 0}), digest(DType::kFloat32, {0, 4}));
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
    EXPECT_NE(digest(DType::kFloat32, {4, 6}), base) << "bit " << bit;
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
  }
}

TEST(DigestTensor, NegativeZeroDiffersFromZero) {
  const float zero = 0.0f, negative_zero = -0.0f;
  EXPECT_NE(DigestTensor({DType::kFloat32, {}, &zero}),
            DigestTensor({DType::kFloat32, {}, &negative_zero}));
}

TEST(DigestTensorDeathTest, RefusesWhatIsNoTensor) {
  const Shape negative = {2, -1};
  EXPECT_DEATH(DigestTensor({DType::kFloat32, negative, nullptr}), "out of range");
  EXPECT_DEATH(DigestTensor({static_cast<DType>(99), {}, nullptr}), "dtype 99");
  const Shape one_chunk = {5};
  EXPECT_DEATH(DigestTensorFromChunks(DType::kUInt8, one_chunk, {}), "asks for 1");
}

TEST(TensorBytes, CountsAndRefuses) {
  constexpr std::int64_t kHuge = std::int64_t{1} << 40;
  const struct {
    DType dtype;
    Shape shape;
    bool fits;
    std::size_t bytes;
  } kCases[] = {
      {DType::kFloat64, {}, true, 8},
      {DType::kFloat64, {3, 5}, true, 120},
      {DType::kBFloat16, {3, 5}, true, 30},
      {DType::kBool, {kHuge}, true, std::size_t{1} << 40},
      {DType::kFloat32, {kHuge, kHuge}, false, 0},
      {DType::kFloat32, {kHuge, kHuge, 0}, true, 0},
      {DType::kFloat32, {std::int64_t{1} << 61}, false, 0},
      {DType::kFloat32, {-1}, false, 0},
      {static_cast<DType>(0), {0}, false, 0},
  };
  for (const auto& c : kCases) {
    std::size_t bytes = 0;
    EXPECT_EQ(TensorBytes(c.dtype, c.shape.data(), c.shape.size(), &bytes), c.fits);
    EXPECT_EQ(bytes, c.bytes);
  }
}

TEST(NamedTensorsDigest, OfNothingIsTheDigestOfNoBytes) {
  EXPECT_EQ(NamedTensorsDigest().Finish(), DigestBytes("", 0));
}

TEST(NamedTensorsDigest, MatchesTheLiteralOfTheFormatPage) {
  const float kMatrix[] = {1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f};
  const float kScalar[] = {0.5f};
  const Shape shape = {2, 3};
  NamedTensorsDigest layer;
  layer.Add("weight", DigestTensor({DType::kFloat32, shape, kMatrix}));
  layer.Add("bias", DigestTensor({DType::kFloat32, {}, kScalar}));
  EXPECT_EQ(ToHex(layer.Finish()), "17b23826e04c246f505078ed3498088c");
}

TEST(NamedTensorsDigest, TellsOrderNamesAndCutsApart) {
  const Digest x = DigestBytes("x", 1), y = DigestBytes("y", 1);
  const auto digest = [](const std::vector<std::pair<std::string, Digest>>& tensors) {
    NamedTensorsDigest named;
    for (const auto& [name, tensor] : tensors) named.Add(name, tensor);
    return named.Finish();
  };
  const Digest base = digest({{"a", x}, {"b", y}});
  EXPECT_NE(digest({{"b", y}, {"a", x}}), base);
  EXPECT_NE(digest({{"a", y}, {"b", x}}), base);
  EXPECT_NE(digest({{"a", x}, {"c", y}}), base);
  EXPECT_NE(digest({{"a", x}}), base);
  EXPECT_NE(digest({{"", x}}), digest({}));
}

TEST(NamedTensorsDigest, FinishLeavesItOpen) {
  NamedTensorsDigest once, twice;
  const Digest tensor = DigestBytes("x", 1);
  once.Add("a", tensor);
  once.Add("b", tensor);
  twice.Add("a", tensor);
  EXPECT_NE(twice.Finish(), once.Finish());
  twice.Add("b", tensor);
  EXPECT_EQ(twice.Finish(), once.Finish());
}

}  // namespace
}  // namespace verbatim
