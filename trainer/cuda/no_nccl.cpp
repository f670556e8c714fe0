// A build without NCCL.
#include "base/check.h"
#include "trainer/cuda/nccl_payloads.h"

namespace verbatim {

std::string NcclVersion() {
  return "none";
}

std::string NcclObstacle() {
  return "this build is without NCCL";
}

std::unique_ptr<DevicePayloads> OpenNcclPayloads(const PayloadEnds& ends, std::int64_t) {
  VERBATIM_CHECK(false, "channels of rank {} without NCCL", ends.rank);
}

}  // namespace verbatim
