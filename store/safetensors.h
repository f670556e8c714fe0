// Files of named tensors in the format "safetensors": eight bytes with the length of a JSON header,
// the header, and the tensors' bytes (https://huggingface.co/docs/safetensors). What is written is
// canonical: one content has one sequence of bytes (docs/format.md, "Checkpoints").
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/status.h"

namespace verbatim {

/// The longest header that is read or written.
inline constexpr std::size_t kSafetensorsHeaderBytesMax = 16 << 20;

/// A tensor of a file: contiguous, row-major, little-endian. Does not own its bytes.
struct StoredTensor {
  std::string name;  ///< UTF-8
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> shape;  ///< none negative
  std::string_view data;
};

/// What a file holds. Names are unique; texts are UTF-8.
struct StoredTensors {
  std::map<std::string, std::string> metadata;
  std::vector<StoredTensor> tensors;

  /// Null where there is none of that name.
  const StoredTensor* Find(std::string_view name) const;
};

/// A file in pieces: its bytes are the header's and then each piece's.
struct EncodedTensors {
  std::string header;
  std::vector<std::string_view> data;  ///< views into what was encoded

  std::vector<std::string_view> Pieces() const;
  std::size_t bytes() const;
};

/// The canonical form: tensors by element size, the largest first, then by name; the header is
/// padded with spaces so that every tensor is aligned to its elements. CHECKs that names are
/// unique, sizes fit the shapes, and the header is not too long.
EncodedTensors EncodeSafetensors(const StoredTensors& content);

/// Reads a whole file's bytes, which must outlive the result. Any order of tensors is read, and any
/// padding; everything else is as the format asks for: kBadInput where the header is no such JSON,
/// a type is unknown, or the tensors do not cover the bytes after it without gap or overlap.
/// `source` names the file in errors.
Result<StoredTensors> ParseSafetensors(std::string_view bytes, const std::string& source);

}  // namespace verbatim
