#include "cli/version.h"

namespace verbatim {

const char* ToolVersion() {
  return VERBATIM_VERSION;
}

}  // namespace verbatim
