// Proves that ranks meet over a real TCPStore, and that what keeps them from it is named.
#include "trainer/tcp_store.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <future>

namespace verbatim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// A socket that holds a port of the loopback interface until it goes.
class HeldPort {
 public:
  HeldPort() : descriptor_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(descriptor_, generic, size), 0);
    EXPECT_EQ(getsockname(descriptor_, generic, &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~HeldPort() { close(descriptor_); }
  HeldPort(const HeldPort&) = delete;
  HeldPort& operator=(const HeldPort&) = delete;

  void Listen() const { EXPECT_EQ(listen(descriptor_, 1), 0); }
  std::uint16_t port() const { return port_; }

 private:
  int descriptor_;
  std::uint16_t port_ = 0;
};

std::uint16_t FreePort() {
  return HeldPort().port();
}

RankSetting Setting(int rank, std::uint16_t port) {
  return {rank, 2, "mpirun", "127.0.0.1", port, false, "", true};
}

NetworkSetting Patience(std::int64_t join_timeout_ms) {
  NetworkSetting network;
  network.join_timeout_ms = join_timeout_ms;
  return network;
}

TEST(TcpStore, IsSharedByTheRanks) {
  const std::uint16_t port = FreePort();
  const NetworkSetting network = Patience(60'000);
  // Whoever comes first waits for the server.
  auto other =
      std::async(std::launch::async, [&] { return OpenTcpStore(Setting(1, port), network); });
  auto first = OpenTcpStore(Setting(0, port), network);
  auto second = other.get();
  ASSERT_TRUE(first.has_value()) << first.error().message;
  ASSERT_TRUE(second.has_value()) << second.error().message;

  EXPECT_FALSE(*(*second)->Has("key"));
  // More than the store takes in one value.
  std::string value(std::size_t{10} << 20, 'x');
  value += std::string("\0end", 4);
  auto awaited = std::async(std::launch::async, [&] { return (*second)->Get("key", 60'000); });
  ASSERT_TRUE((*first)->Set("key", value));
  EXPECT_EQ(*awaited.get(), value);
  EXPECT_TRUE(*(*second)->Has("key"));
  ASSERT_TRUE((*first)->Set("empty", ""));
  EXPECT_EQ(*(*second)->Get("empty", 60'000), "");
  EXPECT_EQ(*(*first)->Add("counter", 1), 1);
  EXPECT_EQ(*(*second)->Add("counter", 2), 3);
}

TEST(TcpStore, GetEndsAtItsTimeout) {
  auto store = OpenTcpStore(Setting(0, FreePort()), Patience(60'000));
  ASSERT_TRUE(store.has_value()) << store.error().message;
  const auto value = (*store)->Get("nothing", 100);
  ASSERT_FALSE(value.has_value());
  EXPECT_EQ(value.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(value.error().message, HasSubstr("nothing came within 0.1 s"));
  // It can be used on.
  ASSERT_TRUE((*store)->Set("key", "value"));
  EXPECT_EQ(*(*store)->Get("key", 60'000), "value");
}

TEST(TcpStore, TellsThatItsServerIsGone) {
  const std::uint16_t port = FreePort();
  auto server = OpenTcpStore(Setting(0, port), Patience(60'000));
  ASSERT_TRUE(server.has_value()) << server.error().message;
  auto store = OpenTcpStore(Setting(1, port), Patience(60'000));
  ASSERT_TRUE(store.has_value()) << store.error().message;
  server->reset();
  const auto value = (*store)->Get("key", 60'000);
  ASSERT_FALSE(value.has_value());
  EXPECT_THAT(value.error().message, HasSubstr("is lost"));
}

TEST(TcpStore, PortInUse) {
  HeldPort held;
  held.Listen();
  const auto store = OpenTcpStore(Setting(0, held.port()), Patience(60'000));
  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(store.error().message,
              AllOf(HasSubstr(std::to_string(held.port())), HasSubstr("in use")));
  EXPECT_THAT(store.error().hint, HasSubstr("another MASTER_PORT"));
}

/// Something that listens and never answers.
TEST(TcpStore, AnotherServer) {
  HeldPort held;
  held.Listen();
  const auto store = OpenTcpStore(Setting(1, held.port()), Patience(300));
  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(store.error().message, HasSubstr("is not this run's rendezvous"));
}

TEST(TcpStore, NobodyListens) {
  const auto store = OpenTcpStore(Setting(1, FreePort()), Patience(10));
  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(store.error().message, HasSubstr("nobody listens at 127.0.0.1:"));
  EXPECT_THAT(store.error().hint, HasSubstr("--join-timeout"));
}

TEST(TcpStore, HostsThatAreNone) {
  for (const int rank : {0, 1}) {
    RankSetting setting = Setting(rank, 29500);
    setting.host = "no-such-host.invalid";
    const auto store = OpenTcpStore(setting, Patience(60'000));
    ASSERT_FALSE(store.has_value());
    EXPECT_EQ(store.error().kind, ErrorKind::kFailed);
    EXPECT_THAT(store.error().message, HasSubstr("no-such-host.invalid cannot be resolved"));
  }
}

TEST(TcpStore, RankZeroOnAnotherHost) {
  RankSetting setting = Setting(0, 29500);
  setting.host = "192.0.2.1";  // of no machine (RFC 5737)
  const auto store = OpenTcpStore(setting, Patience(60'000));
  ASSERT_FALSE(store.has_value());
  EXPECT_THAT(store.error().hint, HasSubstr("must be the host of rank 0"));
}

}  // namespace
}  // namespace verbatim
