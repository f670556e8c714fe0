#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "trainer/ranks/card.h"

namespace verbatim {
namespace {

using Facts = std::map<std::string, std::string>;

constexpr std::size_t kShownMax = 80;

std::string Describe(const RankCard& card) {
  return verbatim::Describe(card.name);
}

std::string Shown(const std::string& value) {
  return value.size() <= kShownMax ? value : value.substr(0, kShownMax) + "…";
}

/// "spec.training.batch is 16 on rank 0 and 32 on rank 1 (…)"; empty where both are alike.
std::string FirstDifference(const Facts& first, const RankCard& card, const Facts& other) {
  Facts all = first;
  all.insert(other.begin(), other.end());
  for (const auto& [key, unused] : all) {
    const auto here = first.find(key);
    const auto there = other.find(key);
    const bool is_both = here != first.end() && there != other.end();
    if (is_both && here->second == there->second) continue;
    return fmt::format("{} is {} on rank 0 and {} on {}", key,
                       here == first.end() ? "not set" : Shown(here->second),
                       there == other.end() ? "not set" : Shown(there->second), Describe(card));
  }
  return "";
}

/// Leaves by their dotted paths.
Facts Flatten(const std::string& task_json) {
  Facts leaves;
  const auto task = nlohmann::json::parse(task_json, nullptr, /*allow_exceptions=*/false);
  if (!task.is_structured() || task.empty()) return leaves;
  const auto flat = task.flatten();
  for (const auto& [pointer, value] : flat.items()) {
    std::string path = pointer.substr(1);
    for (char& c : path) c = c == '/' ? '.' : c;
    leaves[path] = value.dump();
  }
  return leaves;
}

Facts NumericFacts(const RankFacts& facts) {
  Facts numeric;
  for (const auto& [key, value] : facts.environment) {
    if (key.rfind("info.", 0) != 0) numeric[key] = value;
  }
  return numeric;
}

Status CompareWithFirst(const RankCard& first, const RankCard& card) {
  if (card.ranks != first.ranks) {
    return Failed(fmt::format("rank 0 was started as one of {} processes, {} as one of {}",
                              first.ranks, Describe(card), card.ranks),
                  "Start all of them with one number of processes.");
  }
  if (card.facts.tool_version != first.facts.tool_version) {
    return Failed(fmt::format("rank 0 runs verbatim {}, {} runs verbatim {}",
                              first.facts.tool_version, Describe(card), card.facts.tool_version),
                  "Install one version on all hosts.");
  }
  const std::string task =
      FirstDifference(Flatten(first.facts.task_json), card, Flatten(card.facts.task_json));
  if (!task.empty()) {
    return UsageError(fmt::format("the ranks were asked to run different things: {}", task),
                      "Start all of them with the same arguments and the same spec.");
  }
  const std::string fact =
      FirstDifference(NumericFacts(first.facts), card, NumericFacts(card.facts));
  if (!fact.empty()) {
    return Failed(
        fmt::format("the ranks' numeric environments differ, so their bits would: {}", fact),
        "Make the hosts alike, or choose a numeric profile that they share: docs/spec.md, section "
        "9.");
  }
  if (card.is_encrypted != first.is_encrypted) {
    return UsageError(fmt::format("--encrypt was given to {} alone",
                                  first.is_encrypted ? "rank 0" : Describe(card)),
                      "Give it to all ranks, or to none.");
  }
  return {};
}

}  // namespace

Status CompareCards(const std::vector<RankCard>& cards) {
  for (const RankCard& card : cards) {
    if (!card.facts.failure) continue;
    const Error& failure = *card.facts.failure;
    return tl::unexpected(Error{failure.kind,
                                card.name.rank == 0
                                    ? failure.message
                                    : fmt::format("{}: {}", Describe(card), failure.message),
                                failure.hint});
  }
  for (const RankCard& card : cards) RETURN_IF_ERROR(CompareWithFirst(cards.front(), card));
  return {};
}

}  // namespace verbatim
