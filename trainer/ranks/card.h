// What the ranks of a rendezvous say: each its card, and rank 0 the answer. Their JSON, and the
// comparison of cards. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "trainer/ranks/network.h"
#include "trainer/ranks/rendezvous.h"

namespace verbatim {

/// A rank's introduction.
struct RankCard {
  PeerName name;
  int ranks = 0;         ///< how many there are, as its launcher says
  std::string run;       ///< the run that rank 0 opened, as this rank read it
  std::string nonce;     ///< drawn by the rank, so that no two cards are alike
  std::string endpoint;  ///< where it listens
  bool is_encrypted = false;
  RankFacts facts;  ///< facts.failure: why it cannot take part
};

/// What rank 0 makes of all cards.
struct RankAnswer {
  std::string run;
  struct Peer {
    PeerName name;
    std::string endpoint;
    std::string card_hash;  ///< of the card that rank 0 read: the answer is for it and no other
  };
  std::vector<Peer> peers;  ///< by rank; empty where there is a failure
  std::string job_json;
  std::optional<Error> failure;  ///< why there is no run; for every rank alike
};

std::string ToJson(const RankCard& card);
std::string ToJson(const RankAnswer& answer);
/// kBadInput where it is none: another version of the program.
Result<RankCard> ParseRankCard(const std::string& json);
Result<RankAnswer> ParseRankAnswer(const std::string& json);

/// Whether all cards, by rank, are of one run: see Join for the errors.
Status CompareCards(const std::vector<RankCard>& cards);

}  // namespace verbatim
