// What a caught exception says, in one line: LibTorch appends a stack trace below the first.
#pragma once

#include <exception>
#include <string>

namespace verbatim {

/// The first line of `text`.
inline std::string FirstLine(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

inline std::string ExceptionText(const std::exception& error) {
  return FirstLine(error.what());
}

}  // namespace verbatim
