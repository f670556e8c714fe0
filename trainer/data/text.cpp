#include "trainer/data/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "recorder/digest.h"
#include "trainer/data/data_file.h"
#include "trainer/data/data_folder.h"

namespace verbatim {
namespace {

constexpr std::size_t kPieceBytes = 1 << 20;
constexpr char kFolderHint[] = "Put the text there, or name its folder with data.folder or --data.";

/// All of the file's content, or one byte more than `most_bytes` of it.
Result<std::vector<std::uint8_t>> ReadContent(const std::filesystem::path& path,
                                              std::size_t most_bytes) {
  ASSIGN_OR_RETURN(DataFile file, DataFile::Open(path));
  std::vector<std::uint8_t> bytes;
  while (bytes.size() <= most_bytes) {
    const std::size_t start = bytes.size();
    const std::size_t wanted = std::min(kPieceBytes, most_bytes + 1 - start);
    bytes.resize(start + wanted);
    ASSIGN_OR_RETURN(const std::size_t count, file.Read(std::span(bytes).subspan(start)));
    bytes.resize(start + count);
    if (count < wanted) break;
  }
  return bytes;
}

}  // namespace

Result<TextSet> LoadText(const std::filesystem::path& folder, const std::string& name,
                         std::int64_t length, std::int64_t source, std::int64_t most_bytes) {
  VERBATIM_CHECK(length >= 1 && source >= 0 && source < length, "length {}, source {}", length,
                 source);
  ASSIGN_OR_RETURN(const DataFolder files, DataFolder::Open(folder, kFolderHint));
  ASSIGN_OR_RETURN(const std::filesystem::path path, files.Require({name, name + ".gz"}));
  TextSet text{.length = length, .source = source};
  ASSIGN_OR_RETURN(text.bytes, ReadContent(path, static_cast<std::size_t>(most_bytes)));
  const auto size = static_cast<std::int64_t>(text.bytes.size());
  if (size > most_bytes) {
    return BadInput(fmt::format("{}: more than {} bytes", path.string(), most_bytes),
                    "Take a part of the text.");
  }
  if (size <= length) {
    return BadInput(fmt::format("{}: {} bytes, but one sample of data.length {} takes {}",
                                path.string(), size, length, length + 1),
                    "Take a longer text, or lower data.length.");
  }
  return text;
}

Digest DigestText(const TextSet& text) {
  NamedTensorsDigest digest;
  const std::array shape{static_cast<std::int64_t>(text.bytes.size())};
  digest.Add("bytes", DigestTensor({DType::kUInt8, shape, text.bytes.data()}));
  return digest.Finish();
}

}  // namespace verbatim
