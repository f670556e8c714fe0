// A verdict in the form that was asked for, as every command that gives one prints it.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/output_file.h"
#include "store/reader.h"
#include "verify/verdict.h"

namespace verbatim {

/// `--format text|json|junit|markdown|html`. `format` holds the default and must outlive the
/// parsing.
void AddVerdictFormatOption(CLI::App& command, std::string& format);

/// `--also FILE`, which may be given several times: the report once more, in the format that the
/// file's name ends in: .txt, .json, .xml (junit), .md (markdown) or .html.
void AddFurtherReportsOption(CLI::App& command, std::vector<std::string>& files);

/// CheckOutputs of the report in `output` and the further ones.
Status CheckReportFiles(const OutputOption& output, const std::vector<std::string>& also,
                        const std::vector<std::filesystem::path>& records);

/// Writes them, replacing existing files. kFailed names the first that cannot be written.
Status WriteFurtherReports(const std::vector<std::string>& files, const Verdict& verdict,
                           const RecordReader& record, const RecordReader* reference);

/// `format` is one of that option's words. `reference` is the record compared with, or null.
std::string RenderVerdict(const std::string& format, const Verdict& verdict,
                          const RecordReader& record, const RecordReader* reference);

}  // namespace verbatim
