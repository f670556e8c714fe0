#include "recorder/part_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/decoder.h"
#include "base/encoding.h"
#include "recorder/digest.h"
#include "recorder/part_format.h"
#include "store/format.h"
#include "store/merkle.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

/// How much is searched at a time for frames behind a damaged one.
constexpr std::uint64_t kWindowBytes = 1 << 20;

constexpr const char* kNameHint =
    "Name a file that a rank left beside its record, such as run.db.rank-1.";
constexpr const char* kDamagedHint =
    "Restore it from a copy. To go on with the run without it, move it away.";

std::string EncodePayload(std::string_view payload) {
  const Digest digest = DigestBytes(payload.data(), payload.size());
  Encoder out;
  out.Reserve(kFrameHeadBytes + payload.size());
  out.Bytes(kFrameMarker.data(), kFrameMarker.size());
  out.U32(static_cast<std::uint32_t>(payload.size()));
  out.Bytes(digest.bytes.data(), digest.bytes.size());
  return out.Bytes(payload.data(), payload.size()).bytes();
}

std::optional<PartSession> DecodeSession(std::string_view payload) {
  Decoder in(payload.substr(1));
  PartSession session;
  const std::string_view spec = in.Bytes(session.spec.bytes.size());
  std::copy(spec.begin(), spec.end(), session.spec.bytes.begin());
  session.rank = static_cast<std::int32_t>(in.U32());
  session.ranks = static_cast<std::int32_t>(in.U32());
  session.host = in.String();
  session.started_utc = in.String();
  const bool is_sound = !in.failed() && in.left() == 0 && 0 <= session.rank &&
                        session.rank < session.ranks && session.started_utc.size() <= 64;
  return is_sound ? std::optional(std::move(session)) : std::nullopt;
}

}  // namespace

Hash256 SpecDigest(std::string_view spec_json) {
  return Blake2b(spec_json);
}

fs::path PartPath(const fs::path& record, int rank) {
  return fs::path(fmt::format("{}.rank-{}", record.string(), rank));
}

std::string EncodePartHead() {
  Encoder out;
  return out.Bytes(kPartMagic.data(), kPartMagic.size()).U32(kPartVersion).bytes();
}

std::string EncodeFrame(const PartSession& session) {
  VERBATIM_CHECK(0 <= session.rank && session.rank < session.ranks, "rank {} of {}", session.rank,
                 session.ranks);
  Encoder out;
  out.U8(kSessionFrame)
      .Bytes(session.spec.bytes.data(), session.spec.bytes.size())
      .U32(static_cast<std::uint32_t>(session.rank))
      .U32(static_cast<std::uint32_t>(session.ranks))
      .String(session.host)
      .String(session.started_utc);
  return EncodePayload(out.bytes());
}

std::string EncodeFrame(std::int64_t seq, std::string_view report) {
  Encoder out;
  out.Reserve(1 + sizeof(seq) + report.size());
  out.U8(kSubnetFrame).I64(seq).Bytes(report.data(), report.size());
  return EncodePayload(out.bytes());
}

Result<PartReader> PartReader::Open(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) {
    return BadInput(fmt::format("{} {}", path.string(),
                                fs::exists(path, error) ? "is no file" : "does not exist"),
                    kNameHint);
  }
  const std::uint64_t size = fs::file_size(path, error);
  if (error) return BadInput(fmt::format("{}: {}", path.string(), error.message()));
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    return Failed(
        fmt::format("cannot read {}: {}", path.string(), std::generic_category().message(errno)),
        "check its permissions");
  }
  PartReader reader(std::move(stream), path.string(), size);
  RETURN_IF_ERROR(reader.ReadHead());
  return reader;
}

Status PartReader::ReadHead() {
  if (size_ == 0) return Damaged("is empty: its rank began no run");
  ASSIGN_OR_RETURN(const std::string head, Read(0, std::min<std::uint64_t>(size_, kPartHeadBytes)));
  const std::size_t magic = std::min(head.size(), kPartMagic.size());
  if (head.compare(0, magic, kPartMagic, 0, magic) != 0) {
    return BadInput(fmt::format("{} is no rank's part file", file_), kNameHint);
  }
  if (head.size() < kPartHeadBytes) return Damaged("is cut off in its first bytes");
  const std::uint32_t version = Decoder(std::string_view(head).substr(magic)).U32();
  if (version != kPartVersion) {
    return BadInput(
        fmt::format("{} has version {}, this program reads {}", file_, version, kPartVersion),
        "Read it with the program that wrote it.");
  }
  at_ = kPartHeadBytes;
  ASSIGN_OR_RETURN(const auto payload, NextPayload());
  if (!payload) return Damaged("is cut off before it says whose it is");
  if (payload->front() != static_cast<char>(kSessionFrame)) {
    return Damaged("does not begin by saying whose it is");
  }
  return TakeSession(*payload);
}

Result<std::optional<Part>> PartReader::Next() {
  while (true) {
    ASSIGN_OR_RETURN(const auto payload, NextPayload());
    if (!payload) return std::nullopt;
    if (payload->front() == static_cast<char>(kSessionFrame)) {
      RETURN_IF_ERROR(TakeSession(*payload));
      continue;
    }
    Decoder in(*payload);
    if (in.U8() != kSubnetFrame) return Damaged("has a frame of a kind that is not known");
    const std::int64_t seq = in.I64();
    if (in.failed() || seq < 0 || seq > kSeqMax) return Damaged("has a frame of no subnet");
    auto report = DecodeReport(seq, in.Bytes(in.left()));
    if (!report) return Damaged("has a bad frame: " + report.error().message);
    return Part{seq, *std::move(report)};
  }
}

Status PartReader::TakeSession(std::string_view payload) {
  auto session = DecodeSession(payload);
  if (!session) return Damaged("has a frame that does not say whose it is");
  if (sessions_ > 0 && (session->spec != session_.spec || session->rank != session_.rank)) {
    return Damaged("holds parts of several runs or ranks");
  }
  session_ = *std::move(session);
  ++sessions_;
  return {};
}

Result<std::optional<std::string>> PartReader::NextPayload() {
  if (at_ == size_) return std::nullopt;
  ASSIGN_OR_RETURN(auto payload, PayloadAt(at_));
  if (!payload) {
    ASSIGN_OR_RETURN(const bool goes_on, HasFrameAfter(at_ + 1));
    if (goes_on) return Damaged("was changed or damaged, with whole frames behind it");
    return std::nullopt;
  }
  at_ += kFrameHeadBytes + payload->size();
  return payload;
}

Result<std::string> PartReader::Read(std::uint64_t at, std::uint64_t size) {
  std::string bytes(size, '\0');
  stream_.clear();
  stream_.seekg(static_cast<std::streamoff>(at));
  if (!stream_.read(bytes.data(), static_cast<std::streamsize>(size))) {
    return Failed(fmt::format("cannot read {} at byte {}", file_, at),
                  "check its disk, and that nobody cuts the file meanwhile");
  }
  return bytes;
}

Result<std::optional<std::string>> PartReader::PayloadAt(std::uint64_t at) {
  if (size_ - at < kFrameHeadBytes) return std::nullopt;
  ASSIGN_OR_RETURN(const std::string head, Read(at, kFrameHeadBytes));
  Decoder in(head);
  const bool is_marked = in.Bytes(kFrameMarker.size()) == kFrameMarker;
  const std::uint32_t size = in.U32();
  if (!is_marked || size == 0 || size > size_ - at - kFrameHeadBytes) return std::nullopt;
  ASSIGN_OR_RETURN(std::string payload, Read(at + kFrameHeadBytes, size));
  const Digest digest = DigestBytes(payload.data(), payload.size());
  const std::string_view stored = in.Bytes(digest.bytes.size());
  const bool is_sound =
      std::equal(stored.begin(), stored.end(), digest.bytes.begin(),
                 [](char a, std::uint8_t b) { return a == static_cast<char>(b); });
  if (!is_sound) return std::nullopt;
  return payload;
}

Result<bool> PartReader::HasFrameAfter(std::uint64_t at) {
  while (at + kFrameHeadBytes <= size_) {
    ASSIGN_OR_RETURN(const std::string window, Read(at, std::min(kWindowBytes, size_ - at)));
    for (std::size_t found = window.find(kFrameMarker); found != std::string::npos;
         found = window.find(kFrameMarker, found + 1)) {
      ASSIGN_OR_RETURN(const auto payload, PayloadAt(at + found));
      if (payload) return true;
    }
    at += window.size() - (kFrameMarker.size() - 1);
  }
  return false;
}

tl::unexpected<Error> PartReader::Damaged(std::string_view what) const {
  return BadInput(fmt::format("{} {} (at byte {})", file_, what, at_), kDamagedHint);
}

}  // namespace verbatim
