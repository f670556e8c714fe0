#include "trainer/ranks/network.h"

#include <fmt/format.h>

namespace verbatim {

std::string Describe(const PeerName& peer) {
  return fmt::format("rank {} (host {}, process {})", peer.rank, peer.host, peer.process);
}

}  // namespace verbatim
