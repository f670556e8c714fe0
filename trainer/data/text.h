// A text as samples: the bytes of any file, cut into pieces of one length.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/status.h"

namespace verbatim {

/// Most bytes that a text may hold (2 GiB).
inline constexpr std::int64_t kMaxTextBytes = std::int64_t{1} << 31;

/// Sample i is the `length` bytes from i·length on, and the byte after them: each place of a sample
/// is followed by the byte that a model learns to predict there. A reader's result holds at least
/// one sample.
struct TextSet {
  std::int64_t length = 0;
  /// Places of a sample that are the encoder's: given, not predicted. 0 <= source < length.
  std::int64_t source = 0;
  std::vector<std::uint8_t> bytes;  ///< the file's content, unchanged

  /// N, the number of whole samples.
  std::int64_t size() const { return (static_cast<std::int64_t>(bytes.size()) - 1) / length; }
  /// Places of a sample that are predicted.
  std::int64_t targets() const { return length - source; }
  std::span<const std::uint8_t> Inputs(std::int64_t sample) const {
    return std::span(bytes).subspan(sample * length, length);
  }
  /// The byte after each predicted place.
  std::span<const std::uint8_t> Labels(std::int64_t sample) const {
    return std::span(bytes).subspan(sample * length + source + 1, targets());
  }
};

/// Reads the file `name` of `folder`, or `name`.gz where there is none; gzip is told by content
/// (DataFile). BadInput where there is neither, where it cannot be read, where it holds more than
/// `most_bytes`, or fewer than one sample takes.
Result<TextSet> LoadText(const std::filesystem::path& folder, const std::string& name,
                         std::int64_t length, std::int64_t source,
                         std::int64_t most_bytes = kMaxTextBytes);

/// NamedTensorsDigest over "bytes" (uint8 [size of the file]): what a record calls the data set's
/// digest.
Digest DigestText(const TextSet& text);

}  // namespace verbatim
