// Proves that the ranks of one run find each other, and that any two that do not fit keep all from
// starting, with an error that says why. Over a store in memory, a thread per rank.
#include "trainer/ranks/rendezvous.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>

#include "trainer/ranks/card.h"
#include "trainer/ranks/sealed_text.h"

namespace verbatim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class MemoryStore : public RendezvousStore {
 public:
  Status Set(const std::string& key, const std::string& value) override {
    const std::lock_guard lock(mutex_);
    values_[key] = value;
    changed_.notify_all();
    return {};
  }
  Result<bool> Has(const std::string& key) override {
    const std::lock_guard lock(mutex_);
    return values_.count(key) == 1;
  }
  Result<std::string> Get(const std::string& key, std::int64_t timeout_ms) override {
    std::unique_lock lock(mutex_);
    const bool is_there = changed_.wait_for(lock, std::chrono::milliseconds(timeout_ms),
                                            [&] { return values_.count(key) == 1; });
    return is_there ? Result<std::string>(values_[key]) : Failed("nothing came");
  }
  Result<std::int64_t> Add(const std::string& key, std::int64_t amount) override {
    const std::lock_guard lock(mutex_);
    return counters_[key] += amount;
  }

  std::map<std::string, std::string> values() {
    const std::lock_guard lock(mutex_);
    return values_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::int64_t> counters_;
};

/// Connected to nobody; knows who the peers would be, and whether they have the same key.
class NoNetwork : public Network {
 public:
  NoNetwork(const ZeroMqOptions& options, const RunKey& key, std::vector<RankAddress> peers)
      : options_(options), password_(key.Password(0, 1)), peers_(std::move(peers)) {}

  int rank() const override { return options_.rank; }
  int ranks() const override { return static_cast<int>(peers_.size()); }
  PeerName NameOf(int rank) const override {
    return peers_.at(static_cast<std::size_t>(rank)).name;
  }
  void Start(NetworkEvents) override {}
  void Send(int, Message) override {}
  void ExpectLeaving() override {}
  void Close(std::int64_t) override {}
  NetworkTraffic Traffic() const override { return {}; }

  const std::string& password() const { return password_; }
  const std::vector<RankAddress>& peers() const { return peers_; }

 private:
  ZeroMqOptions options_;
  std::string password_;
  std::vector<RankAddress> peers_;
};

class NoListener : public ZeroMqListener {
 public:
  NoListener(const ZeroMqOptions& options, const RunKey& key, const std::string& address)
      : options_(options),
        key_(key),
        endpoint_(fmt::format("tcp://{}:{}", address, options.rank)) {}
  const std::string& endpoint() const override { return endpoint_; }
  Result<std::unique_ptr<Network>> Connect(std::vector<RankAddress> ranks) override {
    return std::make_unique<NoNetwork>(options_, key_, std::move(ranks));
  }

 private:
  ZeroMqOptions options_;
  RunKey key_;
  std::string endpoint_;
};

Result<std::unique_ptr<ZeroMqListener>> ListenToNobody(const ZeroMqOptions& options,
                                                       const RunKey& key,
                                                       const std::string& address) {
  return std::make_unique<NoListener>(options, key, address);
}

RunKey RendezvousKey(const std::string& token) {
  return *RunKey::Make(token, "rendezvous");
}

/// One rank's arguments of Join.
struct Visit {
  RankSetting rank;
  NetworkSetting network;
  RankFacts facts;
  OpenListener open = ListenToNobody;
};

/// Ranks of one host without a token, all alike.
std::vector<Visit> Visits(int ranks) {
  std::vector<Visit> visits(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    Visit& visit = visits[static_cast<std::size_t>(rank)];
    visit.rank = {rank, ranks, "torchrun", "127.0.0.1", 29500, false, "run/0", true};
    visit.facts.tool_version = "1.2.3";
    visit.facts.environment = {{"cpu.model", "A"}, {"info.host", std::to_string(rank)}};
    visit.facts.task_json = R"({"command":"train","spec":{"training":{"batch":16,"lr":[1,2]}}})";
  }
  return visits;
}

/// What each rank gets, by its place in `visits`.
std::vector<Result<Joined>> JoinAll(const std::vector<Visit>& visits, MemoryStore& store) {
  std::vector<Result<Joined>> results;
  for (std::size_t i = 0; i < visits.size(); ++i) results.emplace_back(Failed("did not return"));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < visits.size(); ++i) {
    threads.emplace_back([&, i] {
      const Visit& visit = visits[i];
      results[i] = Join(visit.rank, visit.network, visit.facts, "the job", store, visit.open);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

std::vector<Result<Joined>> JoinAll(const std::vector<Visit>& visits) {
  MemoryStore store;
  return JoinAll(visits, store);
}

void ExpectAllFail(const std::vector<Visit>& visits, ErrorKind kind,
                   const testing::Matcher<std::string>& says) {
  for (const auto& result : JoinAll(visits)) {
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().kind, kind) << result.error().message;
    EXPECT_THAT(result.error().message, says);
  }
}

const NoNetwork& NetworkOf(const Result<Joined>& result) {
  return dynamic_cast<const NoNetwork&>(*result->network);
}

TEST(Rendezvous, AllRanksMeet) {
  for (const int ranks : {1, 2, 3, 8}) {
    MemoryStore store;
    const auto results = JoinAll(Visits(ranks), store);
    for (int rank = 0; rank < ranks; ++rank) {
      const auto& result = results[static_cast<std::size_t>(rank)];
      ASSERT_TRUE(result.has_value()) << result.error().message;
      EXPECT_EQ(result->job_json, "the job");
      const NoNetwork& network = NetworkOf(result);
      EXPECT_EQ(network.rank(), rank);
      ASSERT_EQ(network.ranks(), ranks);
      EXPECT_EQ(network.password(), NetworkOf(results[0]).password());
      for (int peer = 0; peer < ranks; ++peer) {
        EXPECT_EQ(network.NameOf(peer).rank, peer);
        EXPECT_EQ(network.peers()[static_cast<std::size_t>(peer)].endpoint,
                  fmt::format("tcp://127.0.0.1:{}", peer));
      }
    }
  }
}

/// The rendezvous learns the name of its file, which is gone afterwards.
TEST(Rendezvous, DrawnTokenStaysOnTheHost) {
  MemoryStore store;
  const auto results = JoinAll(Visits(2), store);
  ASSERT_TRUE(results[0] && results[1]);
  const std::string where = store.values()["verbatim/run/0/token"];
  ASSERT_THAT(where, testing::StartsWith("file /"));
  EXPECT_FALSE(std::filesystem::exists(where.substr(5)));
}

TEST(Rendezvous, RunsDiffer) {
  const auto one = JoinAll(Visits(2));
  const auto other = JoinAll(Visits(2));
  EXPECT_NE(NetworkOf(one[0]).password(), NetworkOf(other[0]).password());
}

TEST(Rendezvous, RefusesDifferentTasks) {
  auto visits = Visits(3);
  visits[2].facts.task_json = R"({"command":"train","spec":{"training":{"batch":32,"lr":[1,2]}}})";
  ExpectAllFail(visits, ErrorKind::kUsage,
                AllOf(HasSubstr("spec.training.batch is 16 on rank 0 and 32 on rank 2 (host"),
                      HasSubstr("different things")));
  visits[2].facts.task_json = R"({"command":"train","spec":{"training":{"batch":16,"lr":[1]}}})";
  ExpectAllFail(visits, ErrorKind::kUsage,
                HasSubstr("spec.training.lr.1 is 2 on rank 0 and not set"));
  visits[2].facts.task_json = R"({"command":"replay"})";
  ExpectAllFail(visits, ErrorKind::kUsage,
                HasSubstr(R"(command is "train" on rank 0 and "replay")"));
  visits[2].facts.task_json = "{}";
  ExpectAllFail(visits, ErrorKind::kUsage,
                HasSubstr(R"(command is "train" on rank 0 and not set)"));
}

TEST(Rendezvous, RefusesDifferentEnvironments) {
  auto visits = Visits(2);
  visits[1].facts.environment = {{"cpu.model", "B"}};
  ExpectAllFail(visits, ErrorKind::kFailed, HasSubstr("cpu.model is A on rank 0 and B on rank 1"));
  visits[1].facts.environment = {{"cpu.model", "A"}, {"threads", "2"}};
  ExpectAllFail(visits, ErrorKind::kFailed, HasSubstr("threads is not set on rank 0 and 2 on"));
}

TEST(Rendezvous, RefusesDifferentPrograms) {
  auto visits = Visits(2);
  visits[1].facts.tool_version = "1.2.4";
  ExpectAllFail(visits, ErrorKind::kFailed, HasSubstr("rank 0 runs verbatim 1.2.3, rank 1"));
}

TEST(Rendezvous, RefusesEncryptionOfOne) {
  auto visits = Visits(2);
  visits[1].network.encrypt = true;
  ExpectAllFail(visits, ErrorKind::kUsage, HasSubstr("--encrypt was given to rank 1"));
}

TEST(Rendezvous, RefusesOtherNumbersOfRanks) {
  auto visits = Visits(2);
  visits[1].rank.ranks = 3;
  ExpectAllFail(visits, ErrorKind::kFailed, HasSubstr("one of 2 processes, rank 1"));
}

TEST(Rendezvous, RefusesARankTooMany) {
  auto visits = Visits(2);
  visits.push_back(Visits(3)[2]);
  const auto results = JoinAll(visits);
  EXPECT_TRUE(results[0].has_value());
  EXPECT_TRUE(results[1].has_value());
  ASSERT_FALSE(results[2].has_value());
  EXPECT_THAT(results[2].error().message, HasSubstr("2 processes without rank 2 of 3"));
}

TEST(Rendezvous, RefusesARankTwice) {
  auto visits = Visits(2);
  visits.push_back(visits[1]);
  const auto results = JoinAll(visits);
  EXPECT_NE(results[1].has_value(), results[2].has_value());
  const auto& refused = results[1] ? results[2] : results[1];
  EXPECT_THAT(refused.error().message, HasSubstr("a rank 1 has joined"));
}

TEST(Rendezvous, NamesWhoIsMissing) {
  auto visits = Visits(4);
  for (Visit& visit : visits) visit.network.join_timeout_ms = 300;
  visits.erase(visits.begin() + 1);
  visits.erase(visits.begin() + 2);
  ExpectAllFail(visits, ErrorKind::kFailed,
                AllOf(HasSubstr("ranks 1, 3 did not join at 127.0.0.1:29500 within 0.3 s")));
}

TEST(Rendezvous, MissesRankZero) {
  auto visits = Visits(2);
  visits[1].network.join_timeout_ms = 50;
  visits[1].network.token = std::string(kTokenBytesMin, 'x');
  visits.erase(visits.begin());
  ExpectAllFail(visits, ErrorKind::kFailed, HasSubstr("nothing was heard of rank 0"));
}

TEST(Rendezvous, ARanksFailureIsEverybodys) {
  for (const std::size_t failing : {0, 2}) {
    auto visits = Visits(3);
    visits[failing].facts.failure = Error{ErrorKind::kBadInput, "its data is gone", "look"};
    ExpectAllFail(visits, ErrorKind::kBadInput, HasSubstr("its data is gone"));
    visits = Visits(3);
    visits[failing].open = [](auto&&...) -> Result<std::unique_ptr<ZeroMqListener>> {
      return Failed("cannot listen");
    };
    ExpectAllFail(visits, ErrorKind::kFailed, HasSubstr("cannot listen"));
  }
}

TEST(Rendezvous, AFailureIsNotWaitedFor) {
  auto visits = Visits(3);
  visits[2].facts.failure = Error{ErrorKind::kFailed, "broken", ""};
  for (Visit& visit : visits) visit.network.join_timeout_ms = 2'000;
  visits.erase(visits.begin() + 1);  // never comes, and nobody says that
  ExpectAllFail(visits, ErrorKind::kFailed, HasSubstr("broken"));
}

TEST(Rendezvous, RefusesOtherTokens) {
  auto visits = Visits(2);
  visits[0].network.token = std::string(kTokenBytesMin, 'x');
  visits[1].network.token = std::string(kTokenBytesMin, 'y');
  const auto results = JoinAll(visits);
  ASSERT_FALSE(results[1].has_value());
  EXPECT_THAT(results[1].error().message, HasSubstr("not sealed with the token of rank 1"));
  ASSERT_FALSE(results[0].has_value());
}

TEST(Rendezvous, NeedsATokenAcrossHosts) {
  auto visits = Visits(2);
  for (Visit& visit : visits) {
    visit.rank.is_one_host = false;
    visit.rank.host = "192.0.2.1";
    visit.network.interface = "127.0.0.1";
  }
  ExpectAllFail(visits, ErrorKind::kUsage, HasSubstr("on several hosts, and they have no token"));
  for (Visit& visit : visits) visit.network.token = "short";
  ExpectAllFail(visits, ErrorKind::kUsage, HasSubstr("the token of the run has 5 bytes"));
  for (Visit& visit : visits) visit.network.token = std::string(kTokenBytesMin, 'x');
  for (const auto& result : JoinAll(visits)) EXPECT_TRUE(result.has_value());
}

TEST(Rendezvous, TokenOfRankZeroAlone) {
  auto visits = Visits(2);
  visits[0].network.token = std::string(kTokenBytesMin, 'x');
  const auto results = JoinAll(visits);
  ASSERT_FALSE(results[1].has_value());
  EXPECT_THAT(results[1].error().message,
              HasSubstr("rank 0 was given a token, and rank 1 was not"));
  ASSERT_FALSE(results[0].has_value());
  EXPECT_THAT(results[0].error().message, HasSubstr("rank 1 gave up before it had joined"));
}

TEST(Rendezvous, RankZeroGivesUpForAll) {
  for (const std::string& token : {std::string(), std::string(kTokenBytesMin, 'x')}) {
    auto visits = Visits(2);
    for (Visit& visit : visits) visit.network.token = token;
    visits[0].network.interface = "nosuch0";
    const auto results = JoinAll(visits);
    ASSERT_FALSE(results[1].has_value());
    EXPECT_THAT(results[1].error().message, HasSubstr("rank 0 gave up before it had joined"));
  }
}

TEST(Rendezvous, ARankWithoutATokenLeavesWord) {
  for (const std::size_t declines : {0, 1}) {
    auto visits = Visits(2);
    for (Visit& visit : visits) visit.network.token = std::string(kTokenBytesMin, 'x');
    const Visit declining = visits[declines];
    visits.erase(visits.begin() + static_cast<std::ptrdiff_t>(declines));
    MemoryStore store;
    std::thread other([&] { Decline(declining.rank, declining.network, store); });
    const auto results = JoinAll(visits, store);
    other.join();
    ASSERT_FALSE(results[0].has_value());
    EXPECT_THAT(results[0].error().message,
                HasSubstr(fmt::format("rank {} gave up before it had joined", declines)));
  }
}

TEST(Rendezvous, RefusesAnUnknownInterface) {
  auto visits = Visits(1);
  visits[0].network.interface = "nosuch0";
  ExpectAllFail(visits, ErrorKind::kUsage, HasSubstr("--interface nosuch0 is no interface"));
  visits[0].network.interface = "lo";
  EXPECT_TRUE(JoinAll(visits)[0].has_value());
}

/// A card that was sealed with the same token, but for an earlier run.
TEST(Rendezvous, RefusesACardOfAnotherRun) {
  auto visits = Visits(2);
  for (Visit& visit : visits) visit.network.token = std::string(kTokenBytesMin, 'x');
  RankCard old;
  old.name.rank = 1;
  old.ranks = 2;
  old.run = "earlier";
  MemoryStore store;
  ASSERT_TRUE(store.Set("verbatim/run/0/card/1",
                        SealText(RendezvousKey(visits[1].network.token), "card/1", ToJson(old))));
  visits.pop_back();
  const auto results = JoinAll(visits, store);
  ASSERT_FALSE(results[0].has_value());
  EXPECT_THAT(results[0].error().message, HasSubstr("the card of rank 1 is of another run"));
}

/// An answer of an earlier run, which an eavesdropper has kept.
TEST(Rendezvous, RefusesAnAnswerToAnotherCard) {
  auto visits = Visits(2);
  const std::string token(kTokenBytesMin, 'x');
  visits[1].network.token = token;
  const RunKey key = RendezvousKey(token);
  MemoryStore store;
  RankAnswer answer;
  answer.run = "earlier";
  answer.peers = {{{0, "a", 1}, "tcp://a", "00"}, {{1, "b", 2}, "tcp://b", "11"}};
  ASSERT_TRUE(store.Set("verbatim/run/0/run", SealText(key, "run", "earlier")));
  ASSERT_TRUE(store.Set("verbatim/run/0/answer", SealText(key, "answer", ToJson(answer))));
  visits.erase(visits.begin());
  const auto results = JoinAll(visits, store);
  ASSERT_FALSE(results[0].has_value());
  EXPECT_THAT(results[0].error().message, HasSubstr("without rank 1"));
}

TEST(SealedText, OpensOnlyWhatWasSealed) {
  const RunKey key = RendezvousKey("a token of some length");
  const std::string sealed = SealText(key, "card/1", "text");
  EXPECT_EQ(OpenText(key, "card/1", sealed), "text");
  EXPECT_EQ(OpenText(key, "card/2", sealed), std::nullopt);
  EXPECT_EQ(OpenText(RendezvousKey("another token of some"), "card/1", sealed), std::nullopt);
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] ^= 1;
    EXPECT_EQ(OpenText(key, "card/1", changed), std::nullopt) << i;
    EXPECT_EQ(OpenText(key, "card/1", sealed.substr(0, i)), std::nullopt) << i;
  }
}

}  // namespace
}  // namespace verbatim
