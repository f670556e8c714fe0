#include "trainer/ranks/refusal_log.h"

#include <fmt/format.h>

namespace verbatim {

void RefusalLog::Add(const std::string& from, const std::string& why, Clock::time_point now) {
  if (!write_) return;
  if (now < quiet_until_) {
    ++unwritten_;
    return;
  }
  std::string line = fmt::format("refused a connection from {}: {}", from, why);
  if (unwritten_ > 0) line += fmt::format(" ({} more were refused before)", unwritten_);
  write_(line);
  unwritten_ = 0;
  quiet_until_ = now + std::chrono::seconds(1);
}

}  // namespace verbatim
