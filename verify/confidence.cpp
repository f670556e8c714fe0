#include "verify/confidence.h"

#include "base/check.h"

namespace verbatim {

double DetectableShare(std::int64_t recorded, std::int64_t drawn, double confidence) {
  VERBATIM_CHECK(recorded >= 1 && drawn >= 0 && drawn <= recorded, "{} of {}", drawn, recorded);
  if (drawn == 0) return 1.0;
  // One more faulty subnet multiplies the probability of missing all of them.
  double missed = 1.0;
  std::int64_t faulty = 0;
  while (1.0 - missed < confidence) {
    const auto sound = static_cast<double>(recorded - faulty);
    missed *= (sound - static_cast<double>(drawn)) / sound;
    ++faulty;
  }
  return static_cast<double>(faulty) / static_cast<double>(recorded);
}

}  // namespace verbatim
