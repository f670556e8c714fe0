#include "cli/render_verdict.h"

#include <fmt/format.h>

#include "cli/version.h"
#include "verify/html/render_html.h"
#include "verify/report.h"
#include "verify/report_junit.h"
#include "verify/report_markdown.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

std::string LowerCase(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

/// Empty where it is nothing known.
std::string FormatOfEnding(const std::string& typed) {
  const std::string ending = LowerCase(typed);
  if (ending == ".txt") return "text";
  if (ending == ".json") return "json";
  if (ending == ".xml") return "junit";
  if (ending == ".md") return "markdown";
  return ending == ".html" ? "html" : "";
}

std::string FormatOf(const fs::path& file) {
  return FormatOfEnding(file.extension().string());
}

std::string ReportProblem(const std::string& file) {
  if (!FormatOf(file).empty()) return "";
  const std::string name = fs::path(file).filename().string();
  if (!FormatOfEnding(name).empty()) {
    return fmt::format("'{}' is an ending without a name before it", file);
  }
  return fmt::format("'{}' ends in none of .txt, .json, .xml, .md and .html", file);
}

}  // namespace

void AddVerdictFormatOption(CLI::App& command, std::string& format) {
  command
      .add_option("--format", format,
                  "text or html for people, json for machines, junit and markdown for CI. "
                  "Example: --format html")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json", "junit", "markdown", "html"}))
      ->capture_default_str();
}

void AddFurtherReportsOption(CLI::App& command, std::vector<std::string>& files) {
  command
      .add_option("--also", files,
                  "Writes the report to a file besides, in the format that its name ends in: .txt, "
                  ".json, .xml (junit), .md or .html. May be given several times. Example: --also "
                  "verdict.xml --also verdict.html")
      ->type_name("FILE")
      ->allow_extra_args(false)
      ->check(CLI::Validator(ReportProblem, ""));
}

Status CheckReportFiles(const OutputOption& output, const std::vector<std::string>& also,
                        const std::vector<fs::path>& records) {
  std::vector<OutputOption> outputs{output};
  for (const std::string& file : also) outputs.push_back({"--also", file});
  return CheckOutputs(outputs, records);
}

Status WriteFurtherReports(const std::vector<std::string>& files, const Verdict& verdict,
                           const RecordReader& record, const RecordReader* reference) {
  for (const std::string& file : files) {
    const std::string report = RenderVerdict(FormatOf(file), verdict, record, reference);
    RETURN_IF_ERROR(WriteResult(report, {"--also", file}));
  }
  return {};
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
