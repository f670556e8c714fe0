// The rendezvous over PyTorch's TCPStore: a server at MASTER_ADDR:MASTER_PORT that torchrun's agent
// runs, or else rank 0. No LibTorch in this header.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "trainer/ranks/launcher.h"
#include "trainer/ranks/rendezvous.h"

namespace verbatim {

/// Connects to the store, and where no launcher serves it and this is rank 0, serves it for as long
/// as the result lives: at the address that MASTER_ADDR stands for and no other, or, where that is
/// a loopback address though there are other hosts, at `network`'s interface. kFailed where the
/// host cannot be resolved, the port is in use, or nobody listens within the join time-out.
Result<std::unique_ptr<RendezvousStore>> OpenTcpStore(const RankSetting& rank,
                                                      const NetworkSetting& network);

}  // namespace verbatim
