#include "recorder/digest.h"

#ifdef VERBATIM_XXHASH_DISPATCH
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>

#include "base/check.h"

namespace verbatim {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensors and messages are digested as they lie in memory");
static_assert(sizeof(Digest) == kDigestBytes);

Digest HashBytes(const void* data, std::size_t size) {
#ifdef VERBATIM_XXHASH_DISPATCH
  const XXH128_hash_t hash = XXH3_128bits_dispatch(data, size);
#else
  const XXH128_hash_t hash = XXH3_128bits(data, size);
#endif
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  Digest digest;
  std::memcpy(digest.bytes.data(), canonical.digest, kDigestBytes);
  return digest;
}

// libxxhash picks its instruction set on the first input above 240 bytes, without a lock. Hashing
// once while the program loads keeps that out of the threads.
[[maybe_unused]] const Digest kInstructionSetChosen = [] {
  const std::array<char, 256> zeros{};
  return HashBytes(zeros.data(), zeros.size());
}();

// The message of a tensor digest. Only tensors above 4 MiB or so need the heap.
class MessageBuffer {
 public:
  explicit MessageBuffer(std::size_t size) : size_(size) {
    if (size > inline_.size()) heap_ = std::make_unique_for_overwrite<std::uint8_t[]>(size);
  }

  std::uint8_t* data() { return heap_ ? heap_.get() : inline_.data(); }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_;
  std::unique_ptr<std::uint8_t[]> heap_;
  std::array<std::uint8_t, 1280> inline_;
};

std::size_t CheckedTensorBytes(DType dtype, std::span<const std::int64_t> shape) {
  std::size_t byte_size = 0;
  VERBATIM_CHECK(TensorBytes(dtype, shape.data(), shape.size(), &byte_size),
                 "dtype {} or a dimension is out of range", static_cast<std::uint32_t>(dtype));
  return byte_size;
}

std::uint8_t* PutHeader(DType dtype, std::span<const std::int64_t> shape, std::uint8_t* out) {
  for (std::size_t i = 0; i <= shape.size(); ++i) {
    const std::uint64_t word = DigestHeaderWord(dtype, shape.data(), shape.size(), i);
    std::memcpy(out, &word, sizeof word);
    out += sizeof word;
  }
  return out;
}

}  // namespace

Digest DigestBytes(const void* data, std::size_t size) {
  return HashBytes(data, size);
}

Digest DigestTensor(const TensorView& tensor) {
  const std::size_t byte_size = CheckedTensorBytes(tensor.dtype, tensor.shape);
  MessageBuffer message(DigestMessageBytes(tensor.shape.size(), DigestChunkCount(byte_size)));
  std::uint8_t* out = PutHeader(tensor.dtype, tensor.shape, message.data());
  const auto* bytes = static_cast<const std::uint8_t*>(tensor.data);
  for (std::size_t begin = 0; begin < byte_size; begin += kDigestChunkBytes) {
    const Digest chunk = HashBytes(bytes + begin, std::min(kDigestChunkBytes, byte_size - begin));
    std::memcpy(out, chunk.bytes.data(), kDigestBytes);
    out += kDigestBytes;
  }
  return HashBytes(message.data(), message.size());
}

Digest DigestTensorFromChunks(DType dtype, std::span<const std::int64_t> shape,
                              std::span<const Digest> chunks) {
  const std::size_t chunk_count = DigestChunkCount(CheckedTensorBytes(dtype, shape));
  VERBATIM_CHECK(chunks.size() == chunk_count, "{} chunk digests where the shape asks for {}",
                 chunks.size(), chunk_count);
  MessageBuffer message(DigestMessageBytes(shape.size(), chunk_count));
  std::uint8_t* out = PutHeader(dtype, shape, message.data());
  if (!chunks.empty()) std::memcpy(out, chunks.data(), chunks.size_bytes());
  return HashBytes(message.data(), message.size());
}

void NamedTensorsDigest::Add(std::string_view name, const Digest& tensor) {
  message_.String(name).Bytes(tensor.bytes.data(), tensor.bytes.size());
}

Digest NamedTensorsDigest::Finish() const {
  return HashBytes(message_.bytes().data(), message_.bytes().size());
}

}  // namespace verbatim
