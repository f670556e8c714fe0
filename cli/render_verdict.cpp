#include "cli/render_verdict.h"

#include "cli/version.h"
#include "verify/html/render_html.h"
#include "verify/report.h"
#include "verify/report_junit.h"
#include "verify/report_markdown.h"

namespace verbatim {

void AddVerdictFormatOption(CLI::App& command, std::string& format) {
  command
      .add_option("--format", format,
                  "text or html for people, json for machines, junit and markdown for CI. "
                  "Example: --format html")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json", "junit", "markdown", "html"}))
      ->capture_default_str();
}

std::string RenderVerdict(const std::string& format, const Verdict& verdict,
                          const RecordReader& record, const RecordReader* reference) {
  if (format == "json") return RenderJson(verdict, ToolVersion());
  if (format == "junit") return RenderJunit(verdict, ToolVersion());
  if (format == "markdown") return RenderMarkdown(verdict);
  if (format == "html") return RenderHtml(verdict, record, reference, ToolVersion());
  return RenderText(verdict);
}

}  // namespace verbatim
