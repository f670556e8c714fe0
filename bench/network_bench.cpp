// Messages of one tensor from one rank to another over the loopback interface, beside a bare TCP
// socket that sends as many bytes into a buffer of its own per message: GB/s, median of rounds in
// which each has its turn. Usage: network_bench [ROUNDS [MIB per measurement]]
#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <future>
#include <semaphore>
#include <thread>
#include <vector>

#include "base/check.h"
#include "trainer/ranks/zeromq_network.h"

namespace verbatim {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

SentTensor TensorOf(std::size_t size) {
  auto bytes = std::make_shared<std::vector<std::byte>>(size, std::byte{7});
  return {DType::kUInt8, {static_cast<std::int64_t>(size)}, bytes->data(), size, bytes};
}

/// Two ranks of this process.
class Pair {
 public:
  explicit Pair(bool encrypt) {
    const RunKey key = *RunKey::Make(DrawToken(), "bench");
    std::vector<std::unique_ptr<ZeroMqListener>> listeners;
    std::vector<RankAddress> addresses;
    for (int rank : {0, 1}) {
      ZeroMqOptions options{.rank = rank, .ranks = 2, .encrypt = encrypt};
      auto listener = ListenZeroMq(options, key, "127.0.0.1");
      VERBATIM_CHECK(listener.has_value(), "{}", listener.error().message);
      addresses.push_back({{rank, "localhost", getpid()}, (*listener)->endpoint()});
      listeners.push_back(*std::move(listener));
    }
    auto other = std::async(std::launch::async, [&] { return listeners[1]->Connect(addresses); });
    auto first = listeners[0]->Connect(addresses);
    auto second = other.get();
    VERBATIM_CHECK(first && second, "not connected");
    sender_ = *std::move(first);
    receiver_ = *std::move(second);
    const auto lost = [](const PeerName&, const std::string& why) {
      VERBATIM_CHECK(false, "lost: {}", why);
    };
    sender_->Start({[](int, const Message&) {}, lost});
    receiver_->Start({[this](int, const Message&) { arrived_.release(); }, lost});
  }
  ~Pair() {
    sender_->ExpectLeaving();
    receiver_->ExpectLeaving();
  }

  double Measure(std::size_t size, std::size_t count) {
    const SentTensor tensor = TensorOf(size);
    const auto begin = Clock::now();
    for (std::size_t i = 0; i < count; ++i) {
      sender_->Send(1, {.kind = MessageKind::kTask, .tensors = {tensor}});
    }
    for (std::size_t i = 0; i < count; ++i) arrived_.acquire();
    return Seconds(Clock::now() - begin);
  }

 private:
  std::counting_semaphore<> arrived_{0};
  std::unique_ptr<Network> sender_;
  std::unique_ptr<Network> receiver_;
};

/// The two ends of a TCP connection.
class BareSocket {
 public:
  BareSocket() {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* general = reinterpret_cast<sockaddr*>(&address);
    VERBATIM_CHECK(bind(listener, general, size) == 0 && listen(listener, 1) == 0);
    VERBATIM_CHECK(getsockname(listener, general, &size) == 0);
    out_ = socket(AF_INET, SOCK_STREAM, 0);
    VERBATIM_CHECK(connect(out_, general, size) == 0);
    in_ = accept(listener, nullptr, nullptr);
    VERBATIM_CHECK(in_ >= 0);
    close(listener);
  }
  ~BareSocket() {
    close(in_);
    close(out_);
  }
  BareSocket(const BareSocket&) = delete;
  BareSocket& operator=(const BareSocket&) = delete;

  double Measure(std::size_t size, std::size_t count) {
    const SentTensor tensor = TensorOf(size);
    const auto begin = Clock::now();
    std::thread sender([&] {
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t sent = 0; sent < size;) {
          const ssize_t n = send(out_, tensor.data + sent, size - sent, 0);
          VERBATIM_CHECK(n > 0);
          sent += static_cast<std::size_t>(n);
        }
      }
    });
    for (std::size_t i = 0; i < count; ++i) {
      const std::unique_ptr<std::byte[]> buffer(new std::byte[size]);
      VERBATIM_CHECK(recv(in_, buffer.get(), size, MSG_WAITALL) == static_cast<ssize_t>(size));
    }
    sender.join();
    return Seconds(Clock::now() - begin);
  }

 private:
  int out_ = -1;
  int in_ = -1;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void Run(std::size_t rounds, std::size_t bytes) {
  BareSocket bare;
  Pair plain(false);
  Pair encrypted(true);
  fmt::print("{:>10} {:>12} {:>12} {:>12}   GB/s, median of {}\n", "message", "socket", "password",
             "encrypted", rounds);
  for (const std::size_t size :
       {std::size_t{64} << 10, std::size_t{1} << 20, std::size_t{16} << 20}) {
    const std::size_t count = std::max<std::size_t>(1, bytes / size);
    std::vector<double> rates[3];
    for (std::size_t round = 0; round < rounds; ++round) {
      const double gigabytes = static_cast<double>(size * count) / 1e9;
      rates[0].push_back(gigabytes / bare.Measure(size, count));
      rates[1].push_back(gigabytes / plain.Measure(size, count));
      rates[2].push_back(gigabytes / encrypted.Measure(size, count));
    }
    fmt::print("{:>6} KiB {:12.2f} {:12.2f} {:12.2f}\n", size >> 10, Median(rates[0]),
               Median(rates[1]), Median(rates[2]));
  }
}

}  // namespace
}  // namespace verbatim

int main(int argc, char** argv) {
  const auto number = [&](int i, std::size_t otherwise) {
    return argc > i ? static_cast<std::size_t>(std::atoll(argv[i])) : otherwise;
  };
  verbatim::Run(std::max<std::size_t>(1, number(1, 5)), number(2, 512) << 20);
}
