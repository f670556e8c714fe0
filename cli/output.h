// Where results, errors and talk go: results to stdout or a file (output_file.h), the rest to
// stderr.
#pragma once

#include <cstdio>
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

/// "verbatim: error: MESSAGE", then the hint, indented; both ForTerminal. Colored where the
/// terminal allows.
void PrintError(const Error& error, bool no_color);

/// Whether to color `stream`: it is a terminal, NO_COLOR is unset or empty, --no-color not given.
bool UseColor(std::FILE* stream, bool no_color);

}  // namespace verbatim
