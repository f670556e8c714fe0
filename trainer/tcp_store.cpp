#include "trainer/tcp_store.h"

#include <c10/util/Logging.h>
#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/exception_text.h"
#include "trainer/ranks/local_address.h"

namespace verbatim {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// Between two attempts to connect.
constexpr milliseconds kPause{100};
/// Between two looks for a key.
constexpr milliseconds kLook{20};
/// Of one attempt to connect.
constexpr milliseconds kAttempt{3'000};
/// The store takes values of 8 MiB.
constexpr std::size_t kPieceMax = std::size_t{1} << 20;
constexpr int kBacklog = 1024;
/// Of a rank that cannot join, and would tell the others.
constexpr std::int64_t kPatienceMs = 10'000;

double Seconds(std::int64_t milliseconds_count) {
  return static_cast<double>(milliseconds_count) / 1000;
}

std::string Place(const std::string& host, std::uint16_t port) {
  return fmt::format("{}:{}", host, port);
}

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

/// Of an address in numbers.
AddressList Parse(const std::string& address, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &list);
  return AddressList(list, &freeaddrinfo);
}

tl::unexpected<Error> CannotServe(const RankSetting& rank, const std::string& address, int error) {
  const std::string what = fmt::format("rank 0 cannot serve the rendezvous at {}: {}",
                                       Place(address, rank.port), std::strerror(error));
  if (error == EADDRINUSE) {
    return Failed(what, "Another process listens there: choose another MASTER_PORT for this run.");
  }
  if (error == EADDRNOTAVAIL) {
    return Failed(what, fmt::format("MASTER_ADDR, {}, must be the host of rank 0, and that is {}.",
                                    rank.host, HostName()));
  }
  return Failed(what, "Choose another MASTER_PORT, from 1024 to 65535.");
}

/// Where rank 0 listens.
Result<std::string> ServingAddress(const RankSetting& rank, const NetworkSetting& network) {
  ASSIGN_OR_RETURN(std::string address, ResolveHost(rank.host));
  if (!IsLoopback(address) || IsOneHost(rank)) return address;
  return LocalAddress(rank, network.interface);
}

Result<Descriptor> Listen(const RankSetting& rank, const std::string& address) {
  const AddressList list = Parse(address, rank.port);
  if (!list) return CannotServe(rank, address, EADDRNOTAVAIL);
  Descriptor server(socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  setsockopt(server.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (server.number() < 0 || bind(server.number(), list->ai_addr, list->ai_addrlen) != 0 ||
      listen(server.number(), kBacklog) != 0) {
    return CannotServe(rank, address, errno);
  }
  return server;
}

/// 0, or why a connection cannot be made now.
int TryConnect(const addrinfo& address) {
  const Descriptor client(socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (client.number() < 0) return errno;
  if (connect(client.number(), address.ai_addr, address.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  pollfd waiting{client.number(), POLLOUT, 0};
  if (poll(&waiting, 1, static_cast<int>(kAttempt.count())) <= 0) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof(error);
  getsockopt(client.number(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

/// TCPStore itself would fill stderr with its attempts.
Status AwaitServer(const RankSetting& rank, const std::string& address, std::int64_t timeout_ms) {
  const AddressList list = Parse(address, rank.port);
  const auto end = Clock::now() + milliseconds(timeout_ms);
  for (;;) {
    const int error = list ? TryConnect(*list) : EADDRNOTAVAIL;
    if (error == 0) return {};
    if (Clock::now() > end) {
      return Failed(fmt::format("nobody listens at {} (MASTER_ADDR {}): {}; tried for {} s",
                                Place(address, rank.port), rank.host, std::strerror(error),
                                Seconds(timeout_ms)),
                    "Rank 0 must be started on that host, and its MASTER_PORT be open to this one; "
                    "--join-timeout gives it longer.");
    }
    std::this_thread::sleep_for(kPause);
  }
}

/// TCPStore waits for its server's answers without end. So each call has a thread of its own, which
/// is left alone where no answer comes: the process is about to end then.
template <typename Value>
Result<Value> Within(std::int64_t timeout_ms, std::function<Value()> function) {
  auto task = std::make_shared<std::packaged_task<Value()>>(std::move(function));
  auto value = task->get_future();
  std::thread([task] { (*task)(); }).detach();
  if (value.wait_for(milliseconds(timeout_ms)) != std::future_status::ready) {
    return Failed(fmt::format("no answer came within {} s", Seconds(timeout_ms)));
  }
  try {
    return value.get();
  } catch (const std::exception& error) {
    return Failed(ExceptionText(error));
  }
}

std::vector<std::uint8_t> BytesOf(const std::string& text) {
  return std::vector<std::uint8_t>(text.begin(), text.end());
}

class TcpStore : public RendezvousStore {
 public:
  TcpStore(std::string place, std::int64_t timeout_ms, c10::intrusive_ptr<c10d::TCPStore> store)
      : place_(std::move(place)), timeout_ms_(timeout_ms), store_(std::move(store)) {}

  Status Set(const std::string& key, const std::string& value) override {
    RETURN_IF_ERROR(Call<bool>([key, value, store = store_] {
      std::size_t pieces = 0;
      for (std::size_t begin = 0; begin < value.size(); begin += kPieceMax) {
        store->set(PieceKey(key, pieces++), BytesOf(value.substr(begin, kPieceMax)));
      }
      // Whoever sees the key finds all pieces there.
      store->set(key, BytesOf(std::to_string(pieces)));
      return true;
    }));
    return {};
  }

  Result<bool> Has(const std::string& key) override {
    return Call<bool>([key, store = store_] { return store->check({key}); });
  }

  Result<std::string> Get(const std::string& key, std::int64_t timeout_ms) override {
    const auto end = Clock::now() + milliseconds(timeout_ms);
    // TCPStore::wait would log a stack trace where nothing comes.
    for (;;) {
      ASSIGN_OR_RETURN(const bool is_there, Has(key));
      if (is_there) break;
      if (Clock::now() >= end) {
        return Failed(fmt::format("nothing came within {} s", Seconds(timeout_ms)));
      }
      std::this_thread::sleep_for(kLook);
    }
    return Call<std::string>([key, store = store_] {
      const std::vector<std::uint8_t> count = store->get(key);
      const auto pieces = std::stoul(std::string(count.begin(), count.end()));
      std::string value;
      for (std::size_t i = 0; i < pieces; ++i) {
        const std::vector<std::uint8_t> piece = store->get(PieceKey(key, i));
        value.append(piece.begin(), piece.end());
      }
      return value;
    });
  }

  Result<std::int64_t> Add(const std::string& key, std::int64_t amount) override {
    return Call<std::int64_t>([key, amount, store = store_] { return store->add(key, amount); });
  }

 private:
  static std::string PieceKey(const std::string& key, std::size_t piece) {
    return fmt::format("{}#{}", key, piece);
  }

  template <typename Value>
  Result<Value> Call(std::function<Value()> function) {
    Result<Value> value = Within<Value>(timeout_ms_, std::move(function));
    if (value) return value;
    return Failed(fmt::format("the rendezvous at {} is lost: {}", place_, value.error().message),
                  "See what the other ranks said.");
  }

  std::string place_;
  std::int64_t timeout_ms_;
  c10::intrusive_ptr<c10d::TCPStore> store_;
};

Result<std::unique_ptr<RendezvousStore>> Open(const RankSetting& rank, const std::string& address,
                                              std::int64_t timeout_ms,
                                              c10d::TCPStoreOptions options) {
  const std::string place = Place(address, rank.port);
  // Reads TORCH_CPP_LOG_LEVEL, which only Python does by itself: TCPStore warns of addresses that
  // have no name.
  c10::initLogging();
  options.port = rank.port;
  options.waitWorkers = false;
  options.timeout = milliseconds(timeout_ms);
  using Store = c10::intrusive_ptr<c10d::TCPStore>;
  Result<Store> store = Within<Store>(timeout_ms, [address, options] {
    return c10::make_intrusive<c10d::TCPStore>(address, options);
  });
  if (store) return std::make_unique<TcpStore>(place, timeout_ms, *std::move(store));
  return Failed(fmt::format("what listens at {} is not this run's rendezvous: {}", place,
                            store.error().message),
                "Another program may have that port: choose another MASTER_PORT.");
}

}  // namespace

Result<std::unique_ptr<RendezvousStore>> OpenTcpStore(const RankSetting& rank,
                                                      const NetworkSetting& network) {
  c10d::TCPStoreOptions options;
  if (rank.rank != 0 || rank.store_is_up) {
    ASSIGN_OR_RETURN(const std::string address, ResolveHost(rank.host));
    const auto own = LocalAddress(rank, network.interface);
    // Rank 0 may serve no store for the same reason.
    const Status is_up =
        AwaitServer(rank, address,
                    own ? network.join_timeout_ms : std::min(kPatienceMs, network.join_timeout_ms));
    if (!is_up) return tl::unexpected(own ? is_up.error() : own.error());
    return Open(rank, address, network.join_timeout_ms, options);
  }
  ASSIGN_OR_RETURN(const std::string address, ServingAddress(rank, network));
  ASSIGN_OR_RETURN(Descriptor server, Listen(rank, address));
  options.isServer = true;
  options.masterListenFd = server.Release();
  return Open(rank, address, network.join_timeout_ms, options);
}

}  // namespace verbatim
