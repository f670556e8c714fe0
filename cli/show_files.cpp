#include "cli/show_files.h"

#include <string>

#include "cli/version.h"
#include "verify/examine.h"
#include "verify/html/render_html.h"
#include "verify/trace.h"

namespace verbatim {

namespace fs = std::filesystem;

Status ShowHtml(const RecordReader& reader, const fs::path& record, const OutputOption& output) {
  const Verdict verdict = ExamineRecord(reader, record.string());
  return WriteResult(RenderHtml(verdict, reader, nullptr, ToolVersion()), output);
}

Status ShowTrace(const RecordReader& reader, const fs::path& record, const OutputOption& output) {
  return WriteOutput(
      output, [&](const TextSink& write) { return WriteTrace(reader, record.string(), write); });
}

}  // namespace verbatim
