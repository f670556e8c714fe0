// Wall-clock time for people. Nothing that decides a run's bits may look at it.
#pragma once

#include <cstdint>
#include <string>

namespace verbatim {

/// Now, ISO 8601 in UTC to the second: "2026-01-31T12:00:00Z".
std::string UtcNow();

/// Seconds from `utc`, in that form, to now; 0 where it lies in the future or is no such time.
std::int64_t SecondsSince(const std::string& utc);

}  // namespace verbatim
