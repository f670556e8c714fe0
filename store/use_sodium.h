// libsodium, made ready once: it chooses among instruction sets. Whoever calls it comes here first.
#pragma once

#include <sodium.h>

#include "base/check.h"

namespace verbatim {

/// Any thread may be the first.
inline void UseSodium() {
  static const int ready = sodium_init();
  VERBATIM_CHECK(ready >= 0, "libsodium cannot be used");
}

}  // namespace verbatim
