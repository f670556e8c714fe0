// Which address of this machine a rank listens at.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "trainer/ranks/launcher.h"

namespace verbatim {

/// "127.0.0.1", "::1" and their like, as numbers.
bool IsLoopback(const std::string& address);

/// Whether all ranks are on this host: the launcher says so, or they meet at a loopback address.
bool IsOneHost(const RankSetting& rank);

/// The address, as numbers, of the interface that `interface` names, or that address itself where
/// it is one of this machine; kUsage with the names there are where it is neither. Empty: on one
/// host the loopback address, else the one that leads to the rendezvous; kUsage where that is a
/// loopback address, which no other host reaches; kFailed where MASTER_ADDR cannot be resolved.
Result<std::string> LocalAddress(const RankSetting& rank, const std::string& interface);

/// Numeric address that a host's name stands for. kFailed where it stands for none.
Result<std::string> ResolveHost(const std::string& host);

/// Of this machine: its name, for messages.
std::string HostName();

}  // namespace verbatim
