#include "trainer/ranks/local_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <vector>

namespace verbatim {
namespace {

struct NamedAddress {
  std::string interface;
  std::string address;
  int family = AF_INET;
};

/// Empty for what is no internet address.
std::string Numeric(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = nullptr;
  if (address->sa_family == AF_INET) {
    bytes = &reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
  } else if (address->sa_family == AF_INET6) {
    bytes = &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  }
  if (bytes == nullptr) return "";
  return inet_ntop(address->sa_family, bytes, text.data(), text.size()) == nullptr ? ""
                                                                                   : text.data();
}

/// Link-local addresses of IPv6 mean nothing without their interface.
bool IsLinkLocal(const sockaddr* address) {
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

/// Of all interfaces that are up, IPv4 first.
std::vector<NamedAddress> OwnAddresses() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  std::vector<NamedAddress> addresses;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
      if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != family) continue;
      if (IsLinkLocal(entry->ifa_addr)) continue;
      addresses.push_back({entry->ifa_name, Numeric(entry->ifa_addr), family});
    }
  }
  return addresses;
}

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Result<AddressList> Resolve(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host.c_str(), port.empty() ? nullptr : port.c_str(), &hints, &list);
  if (error == 0) return AddressList(list, &freeaddrinfo);
  return Failed(fmt::format("the host {} cannot be resolved: {}", host, gai_strerror(error)),
                "Let MASTER_ADDR name the host of rank 0 by an address, or by a name that this "
                "host knows too.");
}

/// Of the interface that a packet to the rendezvous would leave by; none is sent.
Result<std::string> AddressTowards(const RankSetting& rank) {
  ASSIGN_OR_RETURN(const AddressList list, Resolve(rank.host, std::to_string(rank.port)));
  const int socket_fd = socket(list->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_storage own{};
  socklen_t size = sizeof(own);
  const bool is_known = socket_fd >= 0 &&
                        connect(socket_fd, list->ai_addr, list->ai_addrlen) == 0 &&
                        getsockname(socket_fd, reinterpret_cast<sockaddr*>(&own), &size) == 0;
  const int error = errno;
  if (socket_fd >= 0) close(socket_fd);
  if (is_known) return Numeric(reinterpret_cast<const sockaddr*>(&own));
  return Failed(fmt::format("no interface leads to {}: {}", rank.host, std::strerror(error)),
                "Name the interface to use with --interface.");
}

}  // namespace

bool IsLoopback(const std::string& address) {
  return address.rfind("127.", 0) == 0 || address == "::1" || address.rfind("::ffff:127.", 0) == 0;
}

Result<std::string> ResolveHost(const std::string& host) {
  ASSIGN_OR_RETURN(const AddressList list, Resolve(host, ""));
  return Numeric(list->ai_addr);
}

bool IsOneHost(const RankSetting& rank) {
  if (rank.is_one_host) return true;
  const auto address = ResolveHost(rank.host);
  // Debian lets a host's own name stand for 127.0.1.1: that says nothing of the others.
  return address && IsLoopback(*address) && (rank.host == "localhost" || rank.host == *address);
}

Result<std::string> LocalAddress(const RankSetting& rank, const std::string& interface) {
  if (!interface.empty()) {
    std::set<std::string> names;
    for (const NamedAddress& own : OwnAddresses()) {
      if (own.interface == interface || own.address == interface) return own.address;
      names.insert(own.interface);
    }
    return UsageError(
        fmt::format("--interface {} is no interface or address of {}", interface, HostName()),
        fmt::format("There are {}.", fmt::join(names, ", ")));
  }
  if (IsOneHost(rank)) return "127.0.0.1";
  ASSIGN_OR_RETURN(std::string address, AddressTowards(rank));
  if (!IsLoopback(address)) return address;
  return UsageError(
      fmt::format("the way from {} to MASTER_ADDR, {}, is the loopback interface, which no other "
                  "host reaches",
                  HostName(), rank.host),
      "Let MASTER_ADDR be an address that all hosts reach, or name the interface with "
      "--interface.");
}

std::string HostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

}  // namespace verbatim
