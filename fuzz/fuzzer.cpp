// What libFuzzer calls; VERBATIM_FUZZ_TARGET names the target.
#include <cstddef>
#include <cstdint>

#include "fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto* target = verbatim::fuzz::FindTarget(VERBATIM_FUZZ_TARGET);
  target->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
