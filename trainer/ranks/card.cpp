#include "trainer/ranks/card.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "store/evidence_json.h"
#include "supernet/object_reader.h"
#include "supernet/spec_names.h"
#include "trainer/ranks/launcher.h"

namespace verbatim {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kCardFormat = "verbatim-rank-card";
constexpr const char* kAnswerFormat = "verbatim-rank-answer";
constexpr std::int64_t kVersion = 1;
constexpr NameTable<ErrorKind, 3> kErrorNames{{{"usage", ErrorKind::kUsage},
                                               {"bad input", ErrorKind::kBadInput},
                                               {"failed", ErrorKind::kFailed}}};

std::string Dump(const Json& json) {
  // What a host calls itself may be no UTF-8.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json FailureJson(const Error& error) {
  return {
      {"kind", NameOf(kErrorNames, error.kind)}, {"message", error.message}, {"hint", error.hint}};
}

/// A text that may be empty.
void ReadText(const ObjectReader& object, std::string_view name, std::string* text,
              ReadErrors* errors) {
  const JsonNode* node = object.Find(name, Presence::kRequired);
  if (node != nullptr && ExpectKind(*node, JsonKind::kString, object.PathOf(name), errors)) {
    *text = node->text;
  }
}

std::optional<Error> ReadFailure(const ObjectReader& object, ReadErrors* errors) {
  const JsonNode* node = object.Find("failure");
  if (node == nullptr) return std::nullopt;
  const ObjectReader fields(*node, object.PathOf("failure"), {"kind", "message", "hint"}, errors);
  Error error{ErrorKind::kFailed, "", ""};
  fields.Name("kind", kErrorNames, &error.kind, Presence::kRequired);
  ReadText(fields, "message", &error.message, errors);
  ReadText(fields, "hint", &error.hint, errors);
  return error;
}

void ReadName(const ObjectReader& object, PeerName* name, ReadErrors* errors) {
  std::int64_t rank = 0;
  object.Integer("rank", {0, kMaxRanks - 1}, &rank, Presence::kRequired);
  name->rank = static_cast<int>(rank);
  ReadText(object, "host", &name->host, errors);
  object.Integer("process", {0, INT64_MAX}, &name->process, Presence::kRequired);
}

void ReadEnvironment(const ObjectReader& object, std::vector<EnvironmentRow>* environment,
                     ReadErrors* errors) {
  const JsonNode* node = object.Find("environment", Presence::kRequired);
  if (node == nullptr || !ExpectKind(*node, JsonKind::kObject, "environment", errors)) return;
  for (const JsonNode& fact : node->children) {
    if (ExpectKind(fact, JsonKind::kString, "environment." + fact.key, errors)) {
      environment->push_back({fact.key, fact.text});
    }
  }
}

Result<JsonNode> ParseDocument(const std::string& json, const char* format,
                               const std::string& what) {
  const std::string source = "a rank's " + what;
  ASSIGN_OR_RETURN(JsonNode node, ParseJson(json, source));
  RETURN_IF_ERROR(CheckFormat(node, format, kVersion, what, source));
  return node;
}

}  // namespace

std::string ToJson(const RankCard& card) {
  Json json{{"format", kCardFormat},
            {"version", kVersion},
            {"rank", card.name.rank},
            {"host", card.name.host},
            {"process", card.name.process},
            {"ranks", card.ranks},
            {"run", card.run},
            {"nonce", card.nonce},
            {"endpoint", card.endpoint},
            {"is_encrypted", card.is_encrypted},
            {"tool_version", card.facts.tool_version},
            {"environment", Json::object()},
            {"task", card.facts.task_json}};
  for (const auto& [key, value] : card.facts.environment) json["environment"][key] = value;
  if (card.facts.failure) json["failure"] = FailureJson(*card.facts.failure);
  return Dump(json);
}

std::string ToJson(const RankAnswer& answer) {
  Json json{{"format", kAnswerFormat}, {"version", kVersion}, {"run", answer.run}};
  json["peers"] = Json::array();
  for (const auto& [name, endpoint, card_hash] : answer.peers) {
    json["peers"].push_back({{"rank", name.rank},
                             {"host", name.host},
                             {"process", name.process},
                             {"endpoint", endpoint},
                             {"card", card_hash}});
  }
  json["job"] = answer.job_json;
  if (answer.failure) json["failure"] = FailureJson(*answer.failure);
  return Dump(json);
}

Result<RankCard> ParseRankCard(const std::string& json) {
  ASSIGN_OR_RETURN(const JsonNode node, ParseDocument(json, kCardFormat, "card"));
  ReadErrors errors("a rank's card");
  const ObjectReader object(
      node, "",
      {"format", "version", "rank", "host", "process", "ranks", "run", "nonce", "endpoint",
       "is_encrypted", "tool_version", "environment", "task", "failure"},
      &errors);
  RankCard card;
  ReadName(object, &card.name, &errors);
  std::int64_t ranks = 0;
  object.Integer("ranks", {1, kMaxRanks}, &ranks, Presence::kRequired);
  card.ranks = static_cast<int>(ranks);
  ReadText(object, "run", &card.run, &errors);
  ReadText(object, "nonce", &card.nonce, &errors);
  ReadText(object, "endpoint", &card.endpoint, &errors);
  object.Boolean("is_encrypted", &card.is_encrypted);
  ReadText(object, "tool_version", &card.facts.tool_version, &errors);
  ReadEnvironment(object, &card.facts.environment, &errors);
  ReadText(object, "task", &card.facts.task_json, &errors);
  card.facts.failure = ReadFailure(object, &errors);
  if (errors.first()) return tl::unexpected(*errors.first());
  return card;
}

Result<RankAnswer> ParseRankAnswer(const std::string& json) {
  ASSIGN_OR_RETURN(const JsonNode node, ParseDocument(json, kAnswerFormat, "answer"));
  ReadErrors errors("rank 0's answer");
  const ObjectReader object(node, "", {"format", "version", "run", "peers", "job", "failure"},
                            &errors);
  RankAnswer answer;
  ReadText(object, "run", &answer.run, &errors);
  ReadText(object, "job", &answer.job_json, &errors);
  answer.failure = ReadFailure(object, &errors);
  const JsonNode* peers = object.Find("peers", Presence::kRequired);
  if (peers != nullptr && ExpectKind(*peers, JsonKind::kArray, "peers", &errors)) {
    for (const JsonNode& peer : peers->children) {
      const ObjectReader fields(peer, "peers", {"rank", "host", "process", "endpoint", "card"},
                                &errors);
      RankAnswer::Peer& read = answer.peers.emplace_back();
      ReadName(fields, &read.name, &errors);
      ReadText(fields, "endpoint", &read.endpoint, &errors);
      ReadText(fields, "card", &read.card_hash, &errors);
    }
  }
  if (errors.first()) return tl::unexpected(*errors.first());
  return answer;
}

}  // namespace verbatim
