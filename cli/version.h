// The version of this program, as `verbatim --version` and every record say it.
#pragma once

namespace verbatim {

/// "0.1.0".
const char* ToolVersion();

}  // namespace verbatim
