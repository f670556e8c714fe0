// What the network promises: once each and in order, and losses told once.
#include "trainer/ranks/zeromq_network.h"

#include <gtest/gtest.h>

#include <future>
#include <iostream>
#include <random>

#include "tests/trainer/ranks/mesh.h"

namespace verbatim {
namespace {

using test::BytesTensor;
using test::Connect;
using test::kNeverMs;
using test::Mesh;
using test::PatientOptions;
using ::testing::HasSubstr;

Message TaskMessage(std::int64_t seq, std::vector<SentTensor> tensors = {}) {
  Message message{.kind = MessageKind::kTask, .stage = 1};
  message.task = {TaskKind::kBackward, seq, 3};
  message.tensors = std::move(tensors);
  return message;
}

struct Wire {
  const char* name;
  bool encrypt;
};

class ZeroMqNetwork : public ::testing::TestWithParam<Wire> {
 protected:
  static ZeroMqOptions Options() {
    ZeroMqOptions options = PatientOptions();
    options.encrypt = GetParam().encrypt;
    return options;
  }
};

INSTANTIATE_TEST_SUITE_P(Wires, ZeroMqNetwork,
                         ::testing::Values(Wire{"Plain", false}, Wire{"Encrypted", true}),
                         [](const auto& test) { return std::string(test.param.name); });

/// The message that rank `from` sends as its `number`-th to `to`.
Message NumberedMessage(int from, int to, std::int64_t number) {
  std::mt19937 random(static_cast<unsigned>(1000003 * number + 17 * from + to));
  std::vector<SentTensor> tensors;
  for (unsigned i = 0, count = random() % 4; i < count; ++i) {
    tensors.push_back(BytesTensor(random() % (random() % 8 == 0 ? 50'000 : 2'000), random()));
  }
  return TaskMessage(number, std::move(tensors));
}

TEST_P(ZeroMqNetwork, DeliversEachMessageOnceInOrderWithItsContent) {
  constexpr int kRanks = 4;
  constexpr std::int64_t kMessages = 100;
  const auto mesh = Connect(kRanks, Options());
  mesh->Start();
  std::vector<std::thread> senders;
  for (int from = 0; from < kRanks; ++from) {
    senders.emplace_back([&, from] {
      for (std::int64_t i = 0; i < kMessages * kRanks; ++i) {
        const int to = static_cast<int>(i % kRanks);
        if (to == from) continue;
        mesh->networks[static_cast<std::size_t>(from)]->Send(to,
                                                             NumberedMessage(from, to, i / kRanks));
      }
    });
  }
  for (std::thread& sender : senders) sender.join();
  for (int to = 0; to < kRanks; ++to) {
    for (int from = 0; from < kRanks; ++from) {
      if (from == to) continue;
      const auto messages = mesh->inboxes[static_cast<std::size_t>(to)].Take(from, kMessages);
      ASSERT_EQ(messages.size(), static_cast<std::size_t>(kMessages));
      for (std::int64_t i = 0; i < kMessages; ++i) {
        const Message& got = messages[static_cast<std::size_t>(i)];
        const Message wanted = NumberedMessage(from, to, i);
        ASSERT_EQ(got.task, wanted.task) << from << " to " << to << ", message " << i;
        ASSERT_EQ(got.tensors.size(), wanted.tensors.size());
        for (std::size_t t = 0; t < got.tensors.size(); ++t) {
          ASSERT_TRUE(test::IsEqual(got.tensors[t], wanted.tensors[t]));
        }
      }
    }
    EXPECT_EQ(mesh->inboxes[static_cast<std::size_t>(to)].losses(), 0u);
  }
}

TEST_P(ZeroMqNetwork, CarriesLargeTensorsAndLetsThemGo) {
  const auto mesh = Connect(2, Options());
  mesh->Start();
  const SentTensor large = BytesTensor(std::size_t{64} << 20, 5);
  const std::weak_ptr<const void> sent = large.owner;
  mesh->networks[0]->Send(1, TaskMessage(7, {large, BytesTensor(0, 0), BytesTensor(3, 1)}));
  const auto messages = mesh->inboxes[1].Take(0, 1);
  ASSERT_EQ(messages.size(), 1u);
  ASSERT_EQ(messages[0].tensors.size(), 3u);
  EXPECT_TRUE(test::IsEqual(messages[0].tensors[0], large));
  EXPECT_EQ(messages[0].tensors[1].size, 0u);
  EXPECT_TRUE(test::IsEqual(messages[0].tensors[2], BytesTensor(3, 1)));
  EXPECT_EQ(mesh->networks[0]->Traffic().messages_sent, 1);
  EXPECT_EQ(mesh->networks[0]->Traffic().bytes_sent, (64 << 20) + 3);
  mesh->networks[0]->Close(kNeverMs);
  EXPECT_EQ(large.owner.use_count(), 1) << "the network still holds what it has sent";
}

TEST_P(ZeroMqNetwork, KeepsWhatArrivesBeforeItStarts) {
  const auto mesh = Connect(2, Options());
  mesh->networks[0]->Start(mesh->inboxes[0].Events());
  for (int i = 0; i < 10; ++i) mesh->networks[1]->Send(0, TaskMessage(i));
  mesh->networks[0]->Send(1, TaskMessage(100));
  (void)mesh->inboxes[0].Take(1, 10);
  mesh->networks[0]->Send(1, TaskMessage(101));
  mesh->networks[1]->Start(mesh->inboxes[1].Events());
  const auto messages = mesh->inboxes[1].Take(0, 2);
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0].task.seq, 100);
  EXPECT_EQ(messages[1].task.seq, 101);
}

TEST_P(ZeroMqNetwork, SendsWhatIsQueuedWhenItCloses) {
  const auto mesh = Connect(2, Options());
  mesh->Start();
  for (int i = 0; i < 50; ++i) {
    mesh->networks[0]->Send(1, TaskMessage(i, {BytesTensor(1 << 20, static_cast<unsigned>(i))}));
  }
  mesh->networks[0]->Send(1, {.kind = MessageKind::kAbort, .text = "a reason"});
  mesh->networks[0]->Close(kNeverMs);
  const auto messages = mesh->inboxes[1].Take(0, 51);
  ASSERT_EQ(messages.size(), 51u);
  EXPECT_EQ(messages.back().text, "a reason");
  EXPECT_EQ(mesh->inboxes[1].WaitForLoss(0), "closed its connection");
}

TEST_P(ZeroMqNetwork, SendsNotForEverToARankThatTakesNothing) {
  const auto mesh = Connect(2, Options(), [](int rank, ZeroMqOptions& options, RunKey&) {
    if (rank == 0) options.peer_timeout_ms = 2000;
  });
  // It neither reads nor gives a sign of life until the other has left.
  std::promise<void> has_left;
  mesh->networks[1]->Start(
      {[has_left = has_left.get_future().share()](int, const Message&) { has_left.wait(); },
       [](const PeerName&, const std::string&) {}});
  mesh->networks[0]->Start(mesh->inboxes[0].Events());
  // More than libzmq takes ahead, and then more than the system does.
  for (int i = 0; i < 2000; ++i) mesh->networks[0]->Send(1, TaskMessage(i));
  for (unsigned i = 0; i < 32; ++i) {
    mesh->networks[0]->Send(1, TaskMessage(i, {BytesTensor(1 << 20, i)}));
  }
  mesh->networks[0]->Close(kNeverMs);
  has_left.set_value();
}

TEST_P(ZeroMqNetwork, WaitsForNoRankThatLeavesAtOnce) {
  constexpr unsigned kSeed = 20251201;
  std::cout << "seed " << kSeed << std::endl;
  std::mt19937 random(kSeed);
  for (int i = 0; i < 20; ++i) {
    const auto mesh = Connect(3, Options());
    mesh->Start();
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < 3; ++rank) {
      // Some leave without a word, as a process that is killed.
      const std::int64_t linger_ms = random() % 3 == 0 ? 0 : kNeverMs;
      const unsigned size = random() % 2 == 0 ? 0 : 1 << 20;
      ranks.emplace_back([&, rank, linger_ms, size] {
        const auto& network = mesh->networks[static_cast<std::size_t>(rank)];
        for (int to = 0; to < 3; ++to) {
          if (to != rank) network->Send(to, TaskMessage(1, {BytesTensor(size, 1)}));
        }
        network->Close(linger_ms);
      });
    }
    for (std::thread& rank : ranks) rank.join();
  }
}

TEST_P(ZeroMqNetwork, TellsOnceThatARankVanished) {
  const auto mesh = Connect(3, Options());
  mesh->Start();
  mesh->networks[1]->Close(0);
  EXPECT_EQ(mesh->inboxes[0].WaitForLoss(1), "closed its connection");
  EXPECT_EQ(mesh->inboxes[2].WaitForLoss(1), "closed its connection");
  mesh->networks[0]->Send(1, TaskMessage(1));  // dropped
  mesh->networks[0]->Send(2, TaskMessage(2));
  EXPECT_EQ(mesh->inboxes[2].Take(0, 1).size(), 1u);
  for (const int rank : {0, 2}) {
    mesh->networks[static_cast<std::size_t>(rank)]->Close(kNeverMs);
    EXPECT_LE(mesh->inboxes[static_cast<std::size_t>(rank)].losses(), 2u);
  }
}

TEST_P(ZeroMqNetwork, LosesNobodyWhoMayLeave) {
  const auto mesh = Connect(3, Options());
  mesh->Start();
  for (auto& network : mesh->networks) network->ExpectLeaving();
  mesh->networks[1]->Send(0, {.kind = MessageKind::kDone});
  mesh->networks[1]->Close(kNeverMs);
  EXPECT_EQ(mesh->inboxes[0].Take(1, 1).size(), 1u);
  mesh->networks[2]->Send(0, {.kind = MessageKind::kDone});
  EXPECT_EQ(mesh->inboxes[0].Take(2, 1).size(), 1u);
  mesh->networks[0]->Close(kNeverMs);
  mesh->networks[2]->Close(kNeverMs);
  for (auto& inbox : mesh->inboxes) EXPECT_EQ(inbox.losses(), 0u);
  EXPECT_EQ(mesh->refused.count(), 0u) << mesh->refused.WaitForFirst();
}

TEST(ZeroMqPeers, ASilentRankIsLost) {
  const auto mesh = Connect(2, PatientOptions(), [](int rank, ZeroMqOptions& options, RunKey&) {
    if (rank == 0) options.peer_timeout_ms = 300;
    if (rank == 1) options.alive_interval_ms = kNeverMs;
  });
  mesh->Start();
  EXPECT_EQ(mesh->inboxes[0].WaitForLoss(1), "was not heard from for 0.3 s");
  EXPECT_EQ(mesh->inboxes[1].WaitForLoss(0), "closed its connection");
}

TEST(ZeroMqPeers, AMessageAboveTheLimitIsNotSent) {
  const auto mesh = Connect(2, PatientOptions(), [](int, ZeroMqOptions& options, RunKey&) {
    options.message_bytes_max = 1000;
  });
  mesh->Start();
  mesh->networks[0]->Send(1, TaskMessage(1, {BytesTensor(500, 1)}));
  EXPECT_EQ(mesh->inboxes[1].Take(0, 1).size(), 1u);
  mesh->networks[0]->Send(1, TaskMessage(1, {BytesTensor(500, 1), BytesTensor(501, 1)}));
  EXPECT_EQ(mesh->inboxes[0].WaitForLoss(1),
            "cannot be sent a message of 1001 bytes: 1000 are allowed");
}

TEST(ZeroMqPeers, ARankThatSendsMoreThanTheLimitIsLost) {
  for (const std::size_t frames : {1, 3}) {  // one frame above it, or all together
    const auto mesh = Connect(2, PatientOptions(), [](int rank, ZeroMqOptions& options, RunKey&) {
      if (rank == 1) options.message_bytes_max = 1000;
    });
    mesh->Start();
    const std::vector<SentTensor> tensors(frames, BytesTensor(1500 / frames, 1));
    mesh->networks[0]->Send(1, TaskMessage(1, tensors));
    EXPECT_NE(mesh->inboxes[1].WaitForLoss(0), "");
    EXPECT_EQ(mesh->inboxes[0].WaitForLoss(1), "closed its connection");
    EXPECT_EQ(mesh->inboxes[1].Take(0, 0).size(), 0u);
  }
}

TEST(ZeroMqPeers, OneRankAloneHasANetworkToo) {
  const auto mesh = Connect(1);
  ASSERT_TRUE(mesh->networks[0]);
  mesh->Start();
  mesh->networks[0]->Close(0);
}

TEST(ZeroMqPeers, ClosesAtAnyTimeAndTwice) {
  {
    const auto mesh = Connect(2);  // neither started nor closed
    EXPECT_EQ(mesh->networks[0]->NameOf(1).host, "host1");
    EXPECT_EQ(mesh->networks[0]->ranks(), 2);
    mesh->networks[1]->Close(0);
    mesh->networks[1]->Close(1000);
  }
  const auto never_connected = ListenZeroMq(PatientOptions(), test::KeyOf(), "127.0.0.1");
  ASSERT_TRUE(never_connected.has_value());
  EXPECT_EQ((*never_connected)->endpoint().rfind("tcp://127.0.0.1:", 0), 0u);
}

TEST(ZeroMqPeers, NamesWhoIsMissing) {
  ZeroMqOptions options = PatientOptions();
  options.rank = 0;
  options.ranks = 3;
  options.join_timeout_ms = 200;
  const auto listener = ListenZeroMq(options, test::KeyOf(), "127.0.0.1");
  ASSERT_TRUE(listener.has_value());
  // Whoever listens and never connects.
  const auto silent = ListenZeroMq(PatientOptions(), test::KeyOf(), "127.0.0.1");
  const std::string endpoint = (*silent)->endpoint();
  const auto network = (*listener)->Connect(
      {{{0, "a", 1}, (*listener)->endpoint()}, {{1, "b", 2}, endpoint}, {{2, "c", 3}, endpoint}});
  ASSERT_FALSE(network.has_value());
  EXPECT_EQ(network.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(network.error().message,
              HasSubstr("not connected within 0.2 s: rank 1 (host b, process 2), "
                        "rank 2 (host c, process 3)"));
}

TEST(ZeroMqPeers, NamesWhoCannotBeReached) {
  ZeroMqOptions options = PatientOptions();
  options.ranks = 2;
  std::string gone;
  {
    const auto listener = ListenZeroMq(options, test::KeyOf(), "127.0.0.1");
    gone = (*listener)->endpoint();
  }
  const auto listener = ListenZeroMq(options, test::KeyOf(), "127.0.0.1");
  const auto network =
      (*listener)->Connect({{{0, "a", 1}, (*listener)->endpoint()}, {{1, "b", 2}, gone}});
  ASSERT_FALSE(network.has_value());
  EXPECT_EQ(network.error().message, "rank 1 (host b, process 2) cannot be reached at " + gone);
}

TEST(ZeroMqPeers, CannotListenElsewhere) {
  const auto listener = ListenZeroMq(PatientOptions(), test::KeyOf(), "192.0.2.1");
  ASSERT_FALSE(listener.has_value());
  EXPECT_EQ(listener.error().kind, ErrorKind::kFailed);
  EXPECT_THAT(listener.error().message, HasSubstr("cannot listen on 192.0.2.1"));
}

}  // namespace
}  // namespace verbatim
