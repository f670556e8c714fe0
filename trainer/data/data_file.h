// One data file read from front to back, plain or gzipped, with damage reported and not guessed.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace verbatim {

/// A sequential reader of a file's content. A file that begins with 1f 8b is taken as gzip
/// (RFC 1952, one or more members), any other as plain; neither IDX nor CIFAR can begin so. Unlike
/// zlib's gzread it refuses bytes after the last gzip member. Memory: about 64 KiB, whatever the
/// file. One thread at a time. After an error the reader is of no further use.
class DataFile {
 public:
  /// kBadInput where the file cannot be opened or read.
  static Result<DataFile> Open(const std::filesystem::path& path);

  /// Fills `out` from the content; fewer bytes only where the content ends. kBadInput where the
  /// disk fails or the gzip data is cut short, damaged or followed by other bytes.
  Result<std::size_t> Read(std::span<std::uint8_t> out);

  /// Fills `out` whole. kBadInput where the content ends earlier; the message then goes on with
  /// `expected`, a clause such as "an IDX header takes 16 bytes".
  Status ReadExactly(std::span<std::uint8_t> out, std::string_view expected);

  /// kBadInput, with `expected` in the message, where any content is left.
  Status ExpectEnd(std::string_view expected);

  const std::filesystem::path& path() const { return path_; }

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  struct EndInflate {
    void operator()(z_stream* stream) const;
  };

  DataFile(std::filesystem::path path, std::FILE* file);
  Status Refill();
  Status StartInflate();
  Result<std::size_t> CopyPlain(std::span<std::uint8_t> out);
  Result<std::size_t> Inflate(std::span<std::uint8_t> out);
  int InflateStep(std::span<std::uint8_t> out, std::size_t* produced);

  std::filesystem::path path_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  std::vector<std::uint8_t> input_;
  std::size_t begin_ = 0;  // input_[begin_, end_) is read from disk and not yet consumed
  std::size_t end_ = 0;
  std::unique_ptr<z_stream, EndInflate> inflate_;  // null for a plain file
  bool member_done_ = false;                       // between two gzip members
  std::uint64_t position_ = 0;                     // content bytes handed out
};

}  // namespace verbatim
