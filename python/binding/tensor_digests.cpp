#include "tensor_digests.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>

#include "base/check.h"

namespace verbatim::python {
namespace {

// What a thread takes at a time: large enough to be worth an atomic, small enough that one large
// tensor is shared out.
constexpr std::size_t kPieceChunks = 64;
// A thread costs some 20 microseconds to start, in which one digests a part of this.
constexpr std::size_t kThreadBytesMin = std::size_t{1} << 20;

struct TensorWork {
  const HostTensor* tensor;
  std::size_t byte_size;
  std::vector<Digest> chunks;
};

struct Piece {
  TensorWork* work;
  std::size_t first_chunk;
};

void DigestPiece(const Piece& piece) {
  TensorWork& work = *piece.work;
  const auto* bytes = static_cast<const std::uint8_t*>(work.tensor->data);
  const std::size_t end = std::min(piece.first_chunk + kPieceChunks, work.chunks.size());
  for (std::size_t chunk = piece.first_chunk; chunk < end; ++chunk) {
    const std::size_t begin = chunk * kDigestChunkBytes;
    work.chunks[chunk] =
        DigestBytes(bytes + begin, std::min(kDigestChunkBytes, work.byte_size - begin));
  }
}

void DigestPieces(std::span<const Piece> pieces, std::size_t thread_count) {
  std::atomic<std::size_t> next{0};
  const auto digest_some = [&] {
    for (std::size_t i = next++; i < pieces.size(); i = next++) DigestPiece(pieces[i]);
  };
  std::vector<std::jthread> others;
  try {
    while (others.size() + 1 < thread_count) others.emplace_back(digest_some);
  } catch (const std::system_error&) {
    // The machine gives no more threads: those that are there do the work.
  }
  digest_some();
}

std::vector<TensorWork> WorkOf(std::span<const HostTensor> tensors) {
  std::vector<TensorWork> works;
  works.reserve(tensors.size());
  for (const HostTensor& tensor : tensors) {
    std::size_t byte_size = 0;
    VERBATIM_CHECK(TensorBytes(tensor.dtype, tensor.shape.data(), tensor.shape.size(), &byte_size),
                   "dtype {} or a dimension is out of range",
                   static_cast<std::uint32_t>(tensor.dtype));
    works.push_back({&tensor, byte_size, std::vector<Digest>(DigestChunkCount(byte_size))});
  }
  return works;
}

}  // namespace

std::vector<Digest> DigestTensors(std::span<const HostTensor> tensors, int threads) {
  std::vector<TensorWork> works = WorkOf(tensors);
  std::vector<Piece> pieces;
  std::size_t bytes = 0;
  for (TensorWork& work : works) {
    bytes += work.byte_size;
    for (std::size_t chunk = 0; chunk < work.chunks.size(); chunk += kPieceChunks) {
      pieces.push_back({&work, chunk});
    }
  }
  const std::size_t useful = std::min(pieces.size(), bytes / kThreadBytesMin + 1);
  DigestPieces(pieces, std::min(static_cast<std::size_t>(std::max(threads, 1)), useful));

  std::vector<Digest> digests;
  digests.reserve(works.size());
  for (const TensorWork& work : works) {
    digests.push_back(DigestTensorFromChunks(work.tensor->dtype, work.tensor->shape, work.chunks));
  }
  return digests;
}

}  // namespace verbatim::python
