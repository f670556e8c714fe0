#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace verbatim {

void CheckFailed(const char* file, int line, const char* condition, const std::string& context) {
  std::fprintf(stderr, "verbatim: internal error: CHECK failed: %s at %s:%d%s%s\n", condition, file,
               line, context.empty() ? "" : ": ", context.c_str());
  std::abort();
}

}  // namespace verbatim
