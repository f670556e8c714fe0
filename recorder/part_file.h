// A rank's own file of what it did (docs/format.md, "Part files"): its bytes, and their reader.
// Written by recorder/part_recorder.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "base/hash256.h"
#include "base/status.h"
#include "recorder/rank_report.h"

namespace verbatim {

/// One process that adds to a part file: the run's first one of this rank, or a resumption's.
struct PartSession {
  Hash256 spec;  ///< SpecDigest of the run
  std::int32_t rank = 0;
  std::int32_t ranks = 1;  ///< which resumptions may change
  std::string host;
  std::string started_utc;  ///< ISO 8601, by this host's clock
  bool operator==(const PartSession&) const = default;
};

/// BLAKE2b-256 of the effective spec, as RunInfo::spec_json has it.
Hash256 SpecDigest(std::string_view spec_json);

/// "run.db.rank-1", beside the record.
std::filesystem::path PartPath(const std::filesystem::path& record, int rank);

/// What a file begins with, before its frames.
std::string EncodePartHead();
std::string EncodeFrame(const PartSession& session);
/// `report`: EncodeReport's.
std::string EncodeFrame(std::int64_t seq, std::string_view report);

/// One subnet's frame.
struct Part {
  std::int64_t seq = 0;
  RankReport report;
};

/// Streams over a file, which may still grow: what is added later is not seen. Memory does not grow
/// with the file. Not thread-safe. Errors are kBadInput (not such a file, another version, a frame
/// that is damaged or says what no rank writes) and kFailed (cannot be read), with the file.
class PartReader {
 public:
  /// Reads up to the first session.
  static Result<PartReader> Open(const std::filesystem::path& path);

  const std::string& file() const { return file_; }
  /// That of the last subnet read, or the first.
  const PartSession& session() const { return session_; }
  /// So far; 1 or more.
  int sessions() const { return sessions_; }
  /// The next subnet; nothing after the last whole frame. A frame that is not whole, with no whole
  /// one behind it, is a tail that a crash has torn: it is left out.
  Result<std::optional<Part>> Next();

  /// Bytes up to the end of the last frame read.
  std::uint64_t sound_bytes() const { return at_; }
  /// Bytes after that.
  std::uint64_t bytes_left() const { return size_ - at_; }

 private:
  PartReader(std::ifstream stream, std::string file, std::uint64_t size)
      : stream_(std::move(stream)), file_(std::move(file)), size_(size) {}

  Status ReadHead();
  Result<std::optional<std::string>> NextPayload();
  Result<std::string> Read(std::uint64_t at, std::uint64_t size);
  Result<std::optional<std::string>> PayloadAt(std::uint64_t at);
  Result<bool> HasFrameAfter(std::uint64_t at);
  Status TakeSession(std::string_view payload);
  tl::unexpected<Error> Damaged(std::string_view what) const;

  std::ifstream stream_;
  std::string file_;
  std::uint64_t size_ = 0;
  std::uint64_t at_ = 0;
  PartSession session_;
  int sessions_ = 0;
};

}  // namespace verbatim
