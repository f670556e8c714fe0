// Wall-clock time for people. Nothing that decides a run's bits may look at it.
#pragma once

#include <string>

namespace verbatim {

/// Now, ISO 8601 in UTC to the second: "2026-01-31T12:00:00Z".
std::string UtcNow();

}  // namespace verbatim
