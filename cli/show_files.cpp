#include "cli/show_files.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "cli/output.h"
#include "cli/version.h"
#include "verify/examine.h"
#include "verify/html/render_html.h"
#include "verify/trace.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

Status RefuseRecord(const fs::path& output, const fs::path& record, const char* option) {
  if (!IsPartOfRecord(output, record)) return {};
  return UsageError(
      fmt::format("{} {} is the record itself, or a part of it", option, output.string()),
      "Name another file.");
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

Status CannotWrite(const fs::path& path) {
  return Failed(fmt::format("{} cannot be written: {}", path.string(), std::strerror(errno)),
                "Name another file with --trace.");
}

}  // namespace

Status ShowHtml(const RecordReader& reader, const fs::path& record, const fs::path& output) {
  RETURN_IF_ERROR(RefuseRecord(output, record, "--html"));
  const Verdict verdict = ExamineRecord(reader, record.string());
  Status written = WriteResult(RenderHtml(verdict, reader, nullptr, ToolVersion()), output);
  if (!written) written.error().hint = "Name another file with --html.";
  return written;
}

Status ShowTrace(const RecordReader& reader, const fs::path& record, const fs::path& output) {
  RETURN_IF_ERROR(RefuseRecord(output, record, "--trace"));
  std::unique_ptr<std::FILE, CloseFile> file(std::fopen(output.c_str(), "wb"));
  if (file == nullptr) return CannotWrite(output);
  RETURN_IF_ERROR(WriteTrace(reader, record.string(), [&](std::string_view piece) -> Status {
    if (std::fwrite(piece.data(), 1, piece.size(), file.get()) == piece.size()) return {};
    return CannotWrite(output);
  }));
  return std::fclose(file.release()) == 0 ? Status() : CannotWrite(output);
}

}  // namespace verbatim
