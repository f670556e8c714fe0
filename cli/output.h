// Where results, errors and talk go: results to stdout or a file, the rest to stderr.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/status.h"

namespace verbatim {

/// `text` with control characters other than line ends and tabs replaced by U+FFFD: names in a
/// record, paths and messages may come from anywhere, and must not steer a terminal.
std::string ForTerminal(std::string_view text);

/// Writes a result to stdout, as ForTerminal where that is a terminal. OK also where the reader has
/// closed its end (`| head`); kFailed where it cannot be written, such as on a full disk.
Status WriteToStdout(std::string_view text);

/// Writes a result to `path`, or to stdout where it is empty. An existing file is replaced; kFailed
/// says what kept it from being written.
Status WriteResult(std::string_view text, const std::filesystem::path& path);

/// Whether `path` is the record or one of the files that SQLite keeps beside it.
bool IsPartOfRecord(const std::filesystem::path& path, const std::filesystem::path& record);

/// "verbatim: error: MESSAGE", then the hint, indented; both ForTerminal. Colored where the
/// terminal allows.
void PrintError(const Error& error, bool no_color);

/// Whether to color `stream`: it is a terminal, NO_COLOR is unset or empty, --no-color not given.
bool UseColor(std::FILE* stream, bool no_color);

}  // namespace verbatim
