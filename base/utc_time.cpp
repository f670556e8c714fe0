#include "base/utc_time.h"

#include <algorithm>
#include <ctime>

namespace verbatim {

std::string UtcNow() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

std::int64_t SecondsSince(const std::string& utc) {
  std::tm then{};
  const char* const end = strptime(utc.c_str(), "%Y-%m-%dT%H:%M:%SZ", &then);
  if (end == nullptr || *end != '\0') return 0;
  return std::max<std::int64_t>(0, std::time(nullptr) - timegm(&then));
}

}  // namespace verbatim
