#include "trainer/ranks/rendezvous.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/check.h"
#include "store/merkle.h"
#include "trainer/ranks/card.h"
#include "trainer/ranks/local_address.h"
#include "trainer/ranks/sealed_text.h"
#include "trainer/ranks/shared_token.h"

namespace verbatim {
namespace {

using Clock = std::chrono::steady_clock;

/// What the rendezvous itself is sealed for: a run has no name yet.
constexpr const char* kRendezvous = "rendezvous";

/// Between two looks into the store.
constexpr std::chrono::milliseconds kPause{20};
/// Beyond rank 0's own limit, so that its answer says who is missing.
constexpr std::int64_t kAnswerGraceMs = 10'000;
/// For the others to read why there is no run.
constexpr std::int64_t kFarewellMs = 10'000;

constexpr const char* kMissingHint =
    "See what the others said. All must reach MASTER_ADDR and MASTER_PORT; --join-timeout gives "
    "them longer.";

std::string KeyOf(const RankSetting& rank, const std::string& name) {
  return fmt::format("verbatim/{}/{}", rank.attempt, name);
}

std::string CardName(int rank) {
  return fmt::format("card/{}", rank);
}

std::string SeenName(int rank) {
  return fmt::format("seen/{}", rank);
}

/// Rank 0: gives the others, late ones too, time to read why there is no run: the store and the
/// token's file may go with rank 0.
void AwaitReaders(const RankSetting& rank, const NetworkSetting& network, RendezvousStore& store) {
  const auto end =
      Clock::now() + std::chrono::milliseconds(std::min(kFarewellMs, network.join_timeout_ms));
  for (int other = 1; other < rank.ranks; ++other) {
    while (Clock::now() < end && !store.Has(KeyOf(rank, SeenName(other))).value_or(true)) {
      std::this_thread::sleep_for(kPause);
    }
  }
}

/// One rank at the rendezvous, with the token in hand.
class Visitor {
 public:
  Visitor(const RankSetting& rank, const NetworkSetting& network, RendezvousStore& store,
          RunKey key)
      : rank_(rank), network_(network), store_(store), key_(std::move(key)) {}

  const RankSetting& rank() const { return rank_; }
  const NetworkSetting& network() const { return network_; }

  Status Put(const std::string& name, const std::string& text) {
    return store_.Set(KeyOf(rank_, name), SealText(key_, name, text));
  }
  /// `writer`: whose text it is.
  Result<std::string> Take(const std::string& name, int writer, std::int64_t timeout_ms) {
    const auto sealed = store_.Get(KeyOf(rank_, name), timeout_ms);
    if (!sealed) {
      return Failed(fmt::format("nothing was heard of rank {} at {}:{}: {}", writer, rank_.host,
                                rank_.port, sealed.error().message),
                    kMissingHint);
    }
    if (*sealed == kGaveUp) return tl::unexpected(GaveUpError(writer));
    if (auto text = OpenText(key_, name, *sealed)) return *std::move(text);
    return Failed(
        fmt::format("what rank {} says at {}:{} is not sealed with the token of rank {}", writer,
                    rank_.host, rank_.port, rank_.rank),
        "Give all ranks one token; if all have it, somebody else writes there: choose another "
        "MASTER_PORT.");
  }
  Result<bool> Has(const std::string& name) { return store_.Has(KeyOf(rank_, name)); }
  void AwaitOthers() { AwaitReaders(rank_, network_, store_); }
  void Note(const std::string& name) {
    // Nothing but rank 0's patience depends on it.
    (void)store_.Set(KeyOf(rank_, name), "1");
  }

 private:
  const RankSetting& rank_;
  const NetworkSetting& network_;
  RendezvousStore& store_;
  RunKey key_;
};

/// Each rank may come once: a second one would be another run at the same rendezvous.
Status ComeOnce(const RankSetting& rank, RendezvousStore& store) {
  ASSIGN_OR_RETURN(const std::int64_t times,
                   store.Add(KeyOf(rank, fmt::format("came/{}", rank.rank)), 1));
  if (times == 1) return {};
  return Failed(
      fmt::format("a rank {} has joined at {}:{} already", rank.rank, rank.host, rank.port),
      "Start each rank once, and give each run a MASTER_PORT of its own.");
}

RankCard MakeCard(const RankSetting& rank, const NetworkSetting& network, const RankFacts& facts,
                  const std::string& run) {
  RankCard card;
  card.name = {rank.rank, HostName(), static_cast<std::int64_t>(getpid())};
  card.ranks = rank.ranks;
  card.run = run;
  card.nonce = DrawToken();
  card.is_encrypted = network.encrypt;
  card.facts = facts;
  return card;
}

ZeroMqOptions OptionsFor(const RankSetting& rank, const NetworkSetting& network) {
  ZeroMqOptions options;
  options.rank = rank.rank;
  options.ranks = rank.ranks;
  options.encrypt = network.encrypt;
  options.join_timeout_ms = network.join_timeout_ms;
  options.peer_timeout_ms = network.peer_timeout_ms;
  options.message_bytes_max = network.message_bytes_max;
  options.on_refused = network.on_refused;
  return options;
}

/// Notes on the card where it listens, or what went wrong.
void NoteListener(const Result<std::unique_ptr<ZeroMqListener>>& listener, RankCard& card) {
  if (listener) {
    card.endpoint = (*listener)->endpoint();
  } else if (!card.facts.failure) {
    card.facts.failure = listener.error();
  }
}

Error Missing(const RankSetting& rank, const NetworkSetting& network,
              const std::vector<int>& missing) {
  return Error{
      ErrorKind::kFailed,
      fmt::format("{} {} did not join at {}:{} within {} s", missing.size() == 1 ? "rank" : "ranks",
                  fmt::join(missing, ", "), rank.host, rank.port,
                  static_cast<double>(network.join_timeout_ms) / 1000),
      kMissingHint};
}

/// Rank 0: everybody's card, and the hash of each.
class Gathering {
 public:
  Gathering(Visitor& visitor, const RankCard& own)
      : visitor_(visitor), cards_(static_cast<std::size_t>(own.ranks)), hashes_(cards_.size()) {
    hashes_.front() = ToHex(Blake2b(ToJson(own)));
    cards_.front() = own;
    for (int rank = 1; rank < own.ranks; ++rank) missing_.push_back(rank);
  }

  /// The first thing that is wrong. One that cannot take part is not worth waiting for the rest.
  Status Gather() {
    if (cards_.front().facts.failure) return CompareCards({cards_.front()});
    const auto end = Clock::now() + std::chrono::milliseconds(visitor_.network().join_timeout_ms);
    for (;;) {
      RETURN_IF_ERROR(TakeThose());
      if (missing_.empty()) return CompareCards(cards_);
      if (Clock::now() > end) {
        return tl::unexpected(Missing(visitor_.rank(), visitor_.network(), missing_));
      }
      std::this_thread::sleep_for(kPause);
    }
  }

  RankAnswer Answer(const std::string& job_json) const {
    RankAnswer answer;
    answer.run = cards_.front().run;
    answer.job_json = job_json;
    for (std::size_t rank = 0; rank < cards_.size(); ++rank) {
      answer.peers.push_back({cards_[rank].name, cards_[rank].endpoint, hashes_[rank]});
    }
    return answer;
  }

 private:
  /// Takes the cards that are there now.
  Status TakeThose() {
    std::vector<int> missing;
    for (const int rank : missing_) {
      ASSIGN_OR_RETURN(const bool is_there, visitor_.Has(CardName(rank)));
      if (!is_there) {
        missing.push_back(rank);
        continue;
      }
      RETURN_IF_ERROR(TakeOne(rank));
    }
    missing_ = std::move(missing);
    return {};
  }

  Status TakeOne(int rank) {
    ASSIGN_OR_RETURN(const std::string text,
                     visitor_.Take(CardName(rank), rank, visitor_.network().join_timeout_ms));
    ASSIGN_OR_RETURN(RankCard card, ParseRankCard(text));
    if (card.name.rank != rank || card.run != cards_.front().run) {
      return Failed(fmt::format("the card of rank {} is of another run", rank),
                    "Give each run a MASTER_PORT of its own.");
    }
    if (card.facts.failure) return CompareCards({card});
    hashes_[static_cast<std::size_t>(rank)] = ToHex(Blake2b(text));
    cards_[static_cast<std::size_t>(rank)] = std::move(card);
    return {};
  }

  Visitor& visitor_;
  std::vector<RankCard> cards_;
  std::vector<std::string> hashes_;
  std::vector<int> missing_;
};

std::vector<RankAddress> AddressesOf(const RankAnswer& answer) {
  std::vector<RankAddress> addresses;
  for (const auto& [name, endpoint, hash] : answer.peers) addresses.push_back({name, endpoint});
  return addresses;
}

/// Rank 0's part once it listens.
Result<RankAnswer> Lead(Visitor& visitor, const RankCard& card, const std::string& job_json) {
  Gathering gathering(visitor, card);
  const Status fits = gathering.Gather();
  RankAnswer answer;
  if (fits) {
    answer = gathering.Answer(job_json);
  } else {
    answer.run = card.run;
    answer.failure = fits.error();
  }
  RETURN_IF_ERROR(visitor.Put("answer", ToJson(answer)));
  if (fits) return answer;
  visitor.AwaitOthers();
  return tl::unexpected(fits.error());
}

/// Another rank's part once it listens. Only an answer to this very card is one.
Result<RankAnswer> Follow(Visitor& visitor, const RankCard& card) {
  const int rank = visitor.rank().rank;
  const std::string text = ToJson(card);
  RETURN_IF_ERROR(visitor.Put(CardName(rank), text));
  ASSIGN_OR_RETURN(const std::string sealed,
                   visitor.Take("answer", 0, visitor.network().join_timeout_ms + kAnswerGraceMs));
  ASSIGN_OR_RETURN(RankAnswer answer, ParseRankAnswer(sealed));
  visitor.Note(SeenName(rank));
  if (card.facts.failure) return tl::unexpected(*card.facts.failure);
  if (answer.failure) return tl::unexpected(*answer.failure);
  const auto place = static_cast<std::size_t>(rank);
  if (answer.run == card.run && place < answer.peers.size() &&
      answer.peers[place].card_hash == ToHex(Blake2b(text))) {
    return answer;
  }
  return Failed(fmt::format("rank 0 leads a run of {} processes without rank {} of {}",
                            answer.peers.size(), rank, card.ranks),
                "Start all of them with one number of processes, and give each run a MASTER_PORT "
                "of its own.");
}

/// The run's id, which rank 0 draws.
Result<std::string> OpenRun(Visitor& visitor) {
  if (visitor.rank().rank != 0) return visitor.Take("run", 0, visitor.network().join_timeout_ms);
  std::string run = DrawToken();
  RETURN_IF_ERROR(visitor.Put("run", run));
  return run;
}

Result<Joined> Meet(const RankSetting& rank, const NetworkSetting& network, const RankFacts& facts,
                    const std::string& job_json, RendezvousStore& store, const OpenListener& open) {
  ASSIGN_OR_RETURN(const std::string address, LocalAddress(rank, network.interface));
  const auto key = [&rank](const char* name) { return KeyOf(rank, name); };
  // Its file is there until everybody is connected.
  ASSIGN_OR_RETURN(const SharedToken token, SharedToken::Agree(rank, network, address, key, store));
  ASSIGN_OR_RETURN(RunKey rendezvous_key, RunKey::Make(token.token(), kRendezvous));
  Visitor visitor(rank, network, store, std::move(rendezvous_key));
  ASSIGN_OR_RETURN(const std::string run, OpenRun(visitor));
  ASSIGN_OR_RETURN(const RunKey run_key, RunKey::Make(token.token(), run));
  RankCard card = MakeCard(rank, network, facts, run);
  const auto listener = open(OptionsFor(rank, network), run_key, address);
  NoteListener(listener, card);
  ASSIGN_OR_RETURN(const RankAnswer answer,
                   rank.rank == 0 ? Lead(visitor, card, job_json) : Follow(visitor, card));
  ASSIGN_OR_RETURN(auto connected, (*listener)->Connect(AddressesOf(answer)));
  return Joined{std::move(connected), answer.job_json};
}

/// Leaves word where the others would wait for this rank.
void GiveUp(const RankSetting& rank, RendezvousStore& store) {
  const std::vector<std::string> awaited =
      rank.rank == 0 ? std::vector<std::string>{"token", "run", "answer"}
                     : std::vector<std::string>{CardName(rank.rank), SeenName(rank.rank)};
  for (const std::string& name : awaited) {
    // Where the store is gone too, the others' time-outs end them.
    if (!store.Has(KeyOf(rank, name)).value_or(true)) (void)store.Set(KeyOf(rank, name), kGaveUp);
  }
}

}  // namespace

Result<Joined> Join(const RankSetting& rank, const NetworkSetting& network, const RankFacts& facts,
                    const std::string& job_json, RendezvousStore& store, const OpenListener& open) {
  VERBATIM_CHECK(rank.rank >= 0 && rank.rank < rank.ranks, "rank {} of {}", rank.rank, rank.ranks);
  RETURN_IF_ERROR(ComeOnce(rank, store));
  auto joined = Meet(rank, network, facts, job_json, store, open);
  if (joined) return joined;
  const bool has_answered = store.Has(KeyOf(rank, "answer")).value_or(true);
  GiveUp(rank, store);
  if (rank.rank == 0 && !has_answered) AwaitReaders(rank, network, store);
  return joined;
}

void Decline(const RankSetting& rank, const NetworkSetting& network, RendezvousStore& store) {
  if (!ComeOnce(rank, store)) return;
  GiveUp(rank, store);
  if (rank.rank == 0) AwaitReaders(rank, network, store);
}

}  // namespace verbatim
