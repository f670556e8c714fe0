#include "trainer/data/data_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

namespace verbatim {
namespace {

constexpr std::size_t kInputBytes = 64 * 1024;
constexpr std::array<std::uint8_t, 2> kGzipMagic{0x1f, 0x8b};
constexpr int kGzipOnly = 15 + 16;  // zlib's windowBits: the largest window, gzip wrapper only
constexpr char kCopyAgain[] = "Download or copy the file again.";

tl::unexpected<Error> SystemError(const char* verb, const std::filesystem::path& path, int code) {
  return BadInput(
      fmt::format("cannot {} {}: {}", verb, path.string(), std::generic_category().message(code)),
      "Check the path and that you may read the file.");
}

}  // namespace

void DataFile::EndInflate::operator()(z_stream* stream) const {
  inflateEnd(stream);
  delete stream;
}

DataFile::DataFile(std::filesystem::path path, std::FILE* file)
    : path_(std::move(path)), file_(file), input_(kInputBytes) {}

Result<DataFile> DataFile::Open(const std::filesystem::path& path) {
  std::FILE* handle = std::fopen(path.c_str(), "rb");
  if (handle == nullptr) return SystemError("open", path, errno);
  DataFile file(path, handle);
  RETURN_IF_ERROR(file.Refill());
  if (file.end_ >= 2 && std::equal(kGzipMagic.begin(), kGzipMagic.end(), file.input_.begin())) {
    RETURN_IF_ERROR(file.StartInflate());
  }
  return file;
}

Status DataFile::StartInflate() {
  auto stream = std::make_unique<z_stream>();
  if (const int code = inflateInit2(stream.get(), kGzipOnly); code != Z_OK) {
    return Failed(fmt::format("{}: cannot start zlib: {}", path_.string(), zError(code)));
  }
  inflate_.reset(stream.release());
  return {};
}

Status DataFile::Refill() {
  errno = 0;
  begin_ = 0;
  end_ = std::fread(input_.data(), 1, input_.size(), file_.get());
  if (std::ferror(file_.get())) return SystemError("read", path_, errno);
  return {};
}

Result<std::size_t> DataFile::CopyPlain(std::span<std::uint8_t> out) {
  if (begin_ == end_) RETURN_IF_ERROR(Refill());
  const std::size_t count = std::min(out.size(), end_ - begin_);
  std::copy_n(input_.begin() + static_cast<std::ptrdiff_t>(begin_), count, out.begin());
  begin_ += count;
  return count;
}

int DataFile::InflateStep(std::span<std::uint8_t> out, std::size_t* produced) {
  const std::size_t room = std::min<std::size_t>(out.size(), 1u << 30);  // avail_out is 32 bits
  inflate_->next_in = input_.data() + begin_;
  inflate_->avail_in = static_cast<uInt>(end_ - begin_);
  inflate_->next_out = out.data();
  inflate_->avail_out = static_cast<uInt>(room);
  const int code = inflate(inflate_.get(), Z_NO_FLUSH);
  begin_ = end_ - inflate_->avail_in;
  *produced = room - inflate_->avail_out;
  return code;
}

Result<std::size_t> DataFile::Inflate(std::span<std::uint8_t> out) {
  while (true) {
    if (begin_ == end_) RETURN_IF_ERROR(Refill());
    const bool at_end = begin_ == end_;
    if (at_end && member_done_) return 0;
    if (member_done_ && input_[begin_] != kGzipMagic[0]) {
      return BadInput(fmt::format("{}: other bytes follow the gzip data", path_.string()),
                      kCopyAgain);
    }
    member_done_ = false;
    // Also with no input left: zlib may still hold output that did not fit before.
    std::size_t produced = 0;
    const int code = InflateStep(out, &produced);
    if (code == Z_STREAM_END) {
      inflateReset(inflate_.get());
      member_done_ = true;
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
      const char* detail = inflate_->msg != nullptr ? inflate_->msg : zError(code);
      return BadInput(fmt::format("{}: damaged gzip data ({})", path_.string(), detail),
                      kCopyAgain);
    }
    if (produced > 0) return produced;
    if (at_end && !member_done_) {
      return BadInput(fmt::format("{}: the gzip data is cut short", path_.string()), kCopyAgain);
    }
  }
}

Result<std::size_t> DataFile::Read(std::span<std::uint8_t> out) {
  std::size_t total = 0;
  while (total < out.size()) {
    const auto rest = out.subspan(total);
    ASSIGN_OR_RETURN(const std::size_t count, inflate_ ? Inflate(rest) : CopyPlain(rest));
    if (count == 0) break;
    total += count;
  }
  position_ += total;
  return total;
}

Status DataFile::ReadExactly(std::span<std::uint8_t> out, std::string_view expected) {
  ASSIGN_OR_RETURN(const std::size_t count, Read(out));
  if (count == out.size()) return {};
  if (position_ == 0) {
    return BadInput(fmt::format("{}: the file is empty; {}", path_.string(), expected), kCopyAgain);
  }
  return BadInput(
      fmt::format("{}: the content ends after {} bytes; {}", path_.string(), position_, expected),
      kCopyAgain);
}

Status DataFile::ExpectEnd(std::string_view expected) {
  std::uint8_t extra = 0;
  const std::uint64_t position = position_;
  ASSIGN_OR_RETURN(const std::size_t count, Read(std::span(&extra, 1)));
  if (count == 0) return {};
  return BadInput(
      fmt::format("{}: the content goes on after byte {}; {}", path_.string(), position, expected),
      kCopyAgain);
}

}  // namespace verbatim
