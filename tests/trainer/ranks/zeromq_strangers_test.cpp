// Who is no rank of the run gets in nowhere, is named to people, and harms nobody; and a rank that
// sends what no rank sends is lost.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <deque>
#include <iostream>
#include <random>
#include <zmq.hpp>

#include "tests/trainer/ranks/mesh.h"
#include "trainer/ranks/inbound.h"
#include "trainer/ranks/wire.h"

namespace verbatim {
namespace {

using test::Connect;
using test::kNeverMs;
using test::Mesh;
using test::PatientOptions;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

ZeroMqOptions Encrypted() {
  ZeroMqOptions options = PatientOptions();
  options.encrypt = true;
  return options;
}

/// That all ranks still hear each other.
void ExpectUnharmed(Mesh& mesh) {
  for (const int from : {0, 1}) {
    const int to = 1 - from;
    mesh.networks[static_cast<std::size_t>(from)]->Send(to, {.kind = MessageKind::kDone});
    EXPECT_EQ(mesh.inboxes[static_cast<std::size_t>(to)].Take(from, 1).size(), 1u);
  }
  for (auto& inbox : mesh.inboxes) EXPECT_EQ(inbox.losses(), 0u);
}

/// A ZeroMQ socket that tries to send to rank 0, and what rank 0 says of it.
class Stranger {
 public:
  Stranger() : socket_(context_, zmq::socket_type::push) { socket_.set(zmq::sockopt::linger, 0); }

  zmq::socket_t& socket() { return socket_; }
  void Send(Mesh& mesh) {
    socket_.connect(mesh.addresses[0].endpoint);
    const std::string hello = EncodeHeader({.kind = MessageKind::kHello}, 0);
    socket_.send(zmq::buffer(hello), zmq::send_flags::dontwait);
  }

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
};

TEST(Strangers, WithoutAPasswordAreRefused) {
  const auto mesh = Connect(2);
  mesh->Start();
  Stranger stranger;
  stranger.Send(*mesh);
  // Either side may be the first to find that they do not fit.
  EXPECT_THAT(mesh->refused.WaitForFirst(), HasSubstr("refused a connection from "));
  ExpectUnharmed(*mesh);
}

TEST(Strangers, WithAWrongPasswordAreRefused) {
  const std::pair<std::string, std::string> cases[] = {
      {test::KeyOf("another token, not the run's").Password(1, 0), "password as rank 1 is wrong"},
      {test::KeyOf().Password(0, 1), "password as rank 1 is wrong"},  // heard elsewhere in the run
      {"x", "password as rank 1 is wrong"},
  };
  for (const auto& [password, why] : cases) {
    const auto mesh = Connect(2);
    mesh->Start();
    Stranger stranger;
    stranger.socket().set(zmq::sockopt::plain_username, "1");
    stranger.socket().set(zmq::sockopt::plain_password, password);
    stranger.Send(*mesh);
    EXPECT_EQ(mesh->refused.WaitForFirst(), "refused a connection from 127.0.0.1: its " + why);
    ExpectUnharmed(*mesh);
  }
}

TEST(Strangers, UnderNamesThatNoOtherRankHasAreRefused) {
  for (const char* name : {"0", "2", "-1", "1 ", "one", "99999999999999999999"}) {
    const auto mesh = Connect(2);
    mesh->Start();
    Stranger stranger;
    stranger.socket().set(zmq::sockopt::plain_username, name);
    stranger.socket().set(zmq::sockopt::plain_password, test::KeyOf().Password(1, 0));
    stranger.Send(*mesh);
    EXPECT_THAT(mesh->refused.WaitForFirst(), HasSubstr("refused a connection from")) << name;
    ExpectUnharmed(*mesh);
  }
}

TEST(Strangers, WithoutAKeyOfTheRunAreRefused) {
  const auto mesh = Connect(2, Encrypted());
  mesh->Start();
  const CurveKeys own = test::KeyOf("another token, not the run's").CurveKeysOf(1);
  Stranger stranger;
  stranger.socket().set(zmq::sockopt::curve_serverkey, test::KeyOf().CurveKeysOf(0).public_key);
  stranger.socket().set(zmq::sockopt::curve_publickey, own.public_key);
  stranger.socket().set(zmq::sockopt::curve_secretkey, own.secret_key);
  stranger.Send(*mesh);
  EXPECT_EQ(mesh->refused.WaitForFirst(),
            "refused a connection from 127.0.0.1: its key is none of this run's");
  ExpectUnharmed(*mesh);
}

TEST(Strangers, ThatTakeTheRankForAnotherAreRefused) {
  const auto mesh = Connect(2, Encrypted());
  mesh->Start();
  const RunKey other = test::KeyOf("another token, not the run's");
  Stranger stranger;
  stranger.socket().set(zmq::sockopt::curve_serverkey, other.CurveKeysOf(0).public_key);
  stranger.socket().set(zmq::sockopt::curve_publickey, other.CurveKeysOf(1).public_key);
  stranger.socket().set(zmq::sockopt::curve_secretkey, other.CurveKeysOf(1).secret_key);
  stranger.Send(*mesh);
  EXPECT_THAT(mesh->refused.WaitForFirst(), HasSubstr("refused a connection from"));
  ExpectUnharmed(*mesh);
}

TEST(Strangers, WithAPasswordWhereAKeyIsWantedAreRefused) {
  const auto mesh = Connect(2, Encrypted());
  mesh->Start();
  Stranger stranger;
  stranger.socket().set(zmq::sockopt::plain_username, "1");
  stranger.socket().set(zmq::sockopt::plain_password, test::KeyOf().Password(1, 0));
  stranger.Send(*mesh);
  EXPECT_THAT(mesh->refused.WaitForFirst(), HasSubstr("refused a connection from "));
  ExpectUnharmed(*mesh);
}

/// Connects to rank 0 by TCP, sends bytes, and closes at its end.
class Connection {
 public:
  Connection(const Mesh& mesh, const std::string& bytes)
      : file_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const std::string& endpoint = mesh.addresses[0].endpoint;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port =
        htons(static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1))));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(file_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    (void)!send(file_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  ~Connection() { close(file_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Whether the other side closes it.
  bool WaitForClose() {
    const timeval patience{test::kPatience.count(), 0};
    setsockopt(file_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    std::array<char, 4096> bytes{};
    ssize_t count = 1;
    while (count > 0) count = recv(file_, bytes.data(), bytes.size(), 0);
    return count == 0 || errno == ECONNRESET;
  }

 private:
  int file_;
};

TEST(Strangers, OfAnotherProtocolAreRefused) {
  const std::string greeting("\xff\0\0\0\0\0\0\0\1\x7f\3\1", 12);
  const std::string inputs[] = {
      "",
      "GET / HTTP/1.1\r\n\r\n",
      "\xff",
      greeting,
      greeting + "PLAIN" + std::string(47, '\0') + std::string(40, '\x7f'),
      std::string(100'000, '\xff')};
  for (const std::string& input : inputs) {
    const auto mesh = Connect(2);
    mesh->Start();
    { const Connection stranger(*mesh, input); }
    // ZeroMQ may have closed it before anybody could ask where it is from.
    EXPECT_THAT(mesh->refused.WaitForFirst(),
                ContainsRegex("^refused a connection from (127.0.0.1:[0-9]+|somebody who left at "
                              "once): it (does not speak|does not prove|did not say)"))
        << input;
    ExpectUnharmed(*mesh);
  }
}

TEST(Strangers, InNumbersHarmNobody) {
  constexpr unsigned kSeed = 20250101;
  std::cout << "seed " << kSeed << std::endl;
  std::mt19937 random(kSeed);
  for (const auto& options : {PatientOptions(), Encrypted()}) {
    const auto mesh = Connect(2, options);
    mesh->Start();
    for (int i = 0; i < 200; ++i) {
      std::string bytes(random() % 300, '\0');
      for (char& byte : bytes) byte = static_cast<char>(random());
      if (i % 2 == 0) bytes = std::string("\xff\0\0\0\0\0\0\0\1\x7f", 10) + bytes;
      const Connection stranger(*mesh, bytes);
    }
    ExpectUnharmed(*mesh);
  }
}

TEST(Strangers, ThatStayAreClosed) {
  const std::string greeting =
      std::string("\xff\0\0\0\0\0\0\0\1\x7f\3\0", 12) + "PLAIN" + std::string(47, '\0');
  const std::string inputs[] = {"",                                  // says nothing
                                greeting,                            // not who it is
                                greeting + "\4\7\5HELLO",            // no more than half of that
                                greeting + "\4\12\5HELLO\0011\1x"};  // a wrong password
  const auto mesh = Connect(2, PatientOptions(), [](int, ZeroMqOptions& options, RunKey&) {
    options.handshake_timeout_ms = 2000;
  });
  mesh->Start();
  std::deque<Connection> strangers;
  for (int i = 0; i < 400; ++i) strangers.emplace_back(*mesh, inputs[i % 4]);
  ExpectUnharmed(*mesh);
  for (Connection& stranger : strangers) EXPECT_TRUE(stranger.WaitForClose());
  ExpectUnharmed(*mesh);
}

TEST(Strangers, DoNotTakeAllDescriptors) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 64);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  const auto mesh = Connect(2);
  mesh->Start();
  rlimit raised{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &raised), 0);
  EXPECT_EQ(raised.rlim_cur, limit.rlim_max);
  std::deque<Connection> strangers;
  for (int i = 0; i < 100; ++i) strangers.emplace_back(*mesh, "");
  ExpectUnharmed(*mesh);
}

TEST(Strangers, AnotherTokenKeepsARankOut) {
  for (const auto& options : {PatientOptions(), Encrypted()}) {
    const auto mesh = Connect(2, options, [](int rank, ZeroMqOptions&, RunKey& key) {
      if (rank == 1) key = test::KeyOf("another token, not the run's");
    });
    for (const int rank : {0, 1}) {
      EXPECT_FALSE(mesh->networks[static_cast<std::size_t>(rank)]);
      EXPECT_THAT(mesh->errors[static_cast<std::size_t>(rank)],
                  HasSubstr("rank " + std::to_string(1 - rank) + " (host host"));
    }
  }
}

/// A rank 1 of two that has the password and sends frames as a test wants.
class FakeRank {
 public:
  FakeRank()
      : log_(nullptr),
        inbound_(receiving_, Options(), test::KeyOf(), "127.0.0.1", log_),
        socket_(sending_, zmq::socket_type::push) {
    auto options = PatientOptions();
    options.ranks = 2;
    auto listener = ListenZeroMq(options, test::KeyOf(), "127.0.0.1");
    std::atomic<bool> is_connected = false;
    socket_.set(zmq::sockopt::linger, -1);
    socket_.set(zmq::sockopt::plain_username, "1");
    socket_.set(zmq::sockopt::plain_password, test::KeyOf().Password(1, 0));
    socket_.connect((*listener)->endpoint());
    Send({EncodeHeader({.kind = MessageKind::kHello}, 0)});
    std::thread lets_in([&] {
      while (!is_connected) inbound_.Watch(), std::this_thread::yield();
    });
    auto network = (*listener)->Connect(
        {{{0, "a", 1}, (*listener)->endpoint()}, {{1, "b", 2}, inbound_.endpoint()}});
    is_connected = true;
    lets_in.join();
    EXPECT_TRUE(network.has_value()) << network.error().message;
    rank_0_ = *std::move(network);
    rank_0_->Start(inbox_.Events());
  }

  void Send(const std::vector<std::string>& frames) {
    for (std::size_t i = 0; i < frames.size(); ++i) {
      socket_.send(zmq::buffer(frames[i]),
                   i + 1 < frames.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
    }
  }
  test::Inbox& inbox() { return inbox_; }

 private:
  static ZeroMqOptions Options() {
    auto options = PatientOptions();
    options.rank = 1;
    options.ranks = 2;
    options.message_bytes_max = 1 << 20;
    return options;
  }

  zmq::context_t receiving_;
  zmq::context_t sending_;
  RefusalLog log_;
  Inbound inbound_;
  zmq::socket_t socket_;
  test::Inbox inbox_;
  std::unique_ptr<Network> rank_0_;
};

TEST(FakeRank, IsLostWhereItSendsWhatNoRankSends) {
  const std::string done = EncodeHeader({.kind = MessageKind::kDone}, 2);
  const std::string one_frame =
      EncodeHeader({.kind = MessageKind::kTask, .tensors = {test::BytesTensor(3, 1)}}, 2);
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{""}, "sent no message of a rank: other first bytes"},
      {{"VBTR"}, "sent no message of a rank: a header that is cut short"},
      {{done.substr(0, 30)}, "sent no message of a rank: a header that is cut short"},
      {{done, "abc"}, "sent no message of a rank: 1 frames for 0 tensors"},
      {{one_frame}, "sent no message of a rank: 0 frames for 1 tensors"},
      {{one_frame, "abcd"}, "sent no message of a rank: tensor 0 has 4 bytes instead of 3"},
      {{EncodeHeader({.kind = MessageKind::kDone}, 3)}, "sent message 3 where 2 was due"},
      {{EncodeHeader({.kind = MessageKind::kDone}, 1)}, "sent message 1 where 2 was due"},
      {{EncodeHeader({.kind = MessageKind::kHello}, 0)}, "sent message 0 where 2 was due"},
      {{EncodeHeader({.kind = MessageKind::kHello}, 2)}, "sent message 2 where 2 was due"},
  };
  for (const auto& [frames, why] : cases) {
    FakeRank fake;
    fake.Send({EncodeHeader({.kind = MessageKind::kDone}, 1)});
    fake.Send(frames);
    fake.Send({EncodeHeader({.kind = MessageKind::kDone}, 3)});
    EXPECT_EQ(fake.inbox().WaitForLoss(1), why);
    EXPECT_EQ(fake.inbox().Take(1, 1).size(), 1u) << "messages before it, and none after";
  }
}

}  // namespace
}  // namespace verbatim
