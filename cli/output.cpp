#include "cli/output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace verbatim {
namespace {

/// Zero, or the errno of the first failure.
int WriteAll(std::FILE* file, std::string_view text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), file) != text.size()) return errno;
  return std::fflush(file) == 0 ? 0 : errno;
}

std::string Indented(std::string_view text) {
  std::string indented = "  ";
  for (const char c : text) {
    indented += c;
    if (c == '\n') indented += "  ";
  }
  return indented;
}

}  // namespace

std::string ForTerminal(std::string_view text) {
  std::string safe;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    const bool is_c0 = (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f;
    const bool is_c1 = byte == 0xc2 && next >= 0x80 && next <= 0x9f;  // in UTF-8
    if (is_c0 || is_c1) {
      safe += "\xef\xbf\xbd";
    } else {
      safe += text[i];
    }
    if (is_c1) ++i;
  }
  return safe;
}

Status WriteToStdout(std::string_view text) {
  const bool is_terminal = isatty(STDOUT_FILENO) == 1;
  const int error = is_terminal ? WriteAll(stdout, ForTerminal(text)) : WriteAll(stdout, text);
  if (error == 0) return {};
  std::clearerr(stdout);
  if (error == EPIPE) return {};
  return Failed(fmt::format("standard output cannot be written: {}", std::strerror(error)));
}

bool UseColor(std::FILE* stream, bool no_color) {
  const char* variable = std::getenv("NO_COLOR");
  const bool refused = no_color || (variable != nullptr && *variable != '\0');
  return !refused && isatty(fileno(stream)) == 1;
}

void PrintError(const Error& error, bool no_color) {
  const bool color = UseColor(stderr, no_color);
  std::string text = fmt::format("verbatim: {}error:{} {}\n", color ? "\x1b[31m" : "",
                                 color ? "\x1b[0m" : "", ForTerminal(error.message));
  if (!error.hint.empty()) text += Indented(ForTerminal(error.hint)) + "\n";
  std::fflush(stdout);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace verbatim
