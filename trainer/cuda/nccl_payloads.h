// Channels between the GPUs of ranks, by NCCL's point-to-point operations. A build without NCCL has
// trainer/cuda/no_nccl.cpp instead.
#pragma once

#include <memory>
#include <string>

#include "trainer/device_payloads.h"

namespace verbatim {

/// As NCCL numbers them: "22809" for 2.28.9; "none".
std::string NcclVersion();
/// Why GPUs of several ranks cannot send each other tensors; empty: they can.
std::string NcclObstacle();
/// CHECKs that nothing is in the way. The ends are GPUs. `open_timeout_ms`: until all channels are
/// open.
std::unique_ptr<DevicePayloads> OpenNcclPayloads(const PayloadEnds& ends,
                                                 std::int64_t open_timeout_ms = 300'000);

}  // namespace verbatim
