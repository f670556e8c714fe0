// A run in several processes, as the commands that execute subnets see it: `--interface`,
// `--token-file`, `--encrypt`, `--join-timeout`, `--peer-timeout`, and what a launcher says.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/status.h"
#include "cli/layout_options.h"
#include "supernet/spec.h"
#include "trainer/ranks/launcher.h"
#include "trainer/ranks/rendezvous.h"

namespace verbatim {

struct Invocation;

struct RankOptions {
  std::string interface;  ///< empty: the one that leads to the rendezvous
  std::optional<std::filesystem::path> token_file;
  bool encrypt = false;
  std::int64_t join_timeout_s = 300;
  std::int64_t peer_timeout_s = 30;
};

/// `options` holds the defaults and must outlive the parsing.
void AddRankOptions(CLI::App& command, RankOptions& options);

/// This process's place among the processes of a run. Rank 0 does what the command says; the others
/// only compute, as rank 0 tells them.
struct RankPlace {
  RankSetting rank;
  NetworkSetting network;
  Numerics numerics = Numerics::kNative;  ///< of the spec
  std::string device = "cpu";             ///< or "cuda": what all ranks compute on
  std::string task_json = "{}";           ///< RankFacts::task_json
  std::optional<Error> failure;           ///< why it has no token, and so cannot join

  bool is_first() const { return rank.rank == 0; }
};

/// Nothing where this process is alone. kUsage as ReadRankSetting. Reads the token from
/// --token-file or $VERBATIM_TOKEN; the place's failure is kUsage where there are two tokens, or
/// where others can read the file, kBadInput where it cannot be read.
Result<std::optional<RankPlace>> FindPlace(const RankOptions& options);

/// A layout's stages on that many ranks: one each where --stages was not given. kUsage where there
/// are fewer than ranks. What several processes cannot do is refused with `what`, such as "--inject
/// makes its fault".
Status SettleStages(const RankPlace& place, LayoutOptions& layout);
/// Sets what the ranks compute on, before LibTorch is asked for it: "cpu", "cuda", or as a record
/// names it. kUsage where it names one GPU (each rank uses its own), or where what GPUs send each
/// other was to be encrypted.
Status SettleDevice(const std::string& device, RankPlace& place);
/// Of a process's place, if it has one.
inline LocalRank LocalRankOf(const std::optional<RankPlace>& place) {
  return place ? place->rank.local : LocalRank{};
}
tl::unexpected<Error> NotOnRanks(const std::string& what, const std::string& hint);

/// Does `action`, if the place has not failed, and returns its exit code or error; where it has not
/// joined the other ranks, tells them that there is nothing to do, or why. In the program without
/// an engine that is what the engine is started for.
Result<int> OnRanks(const std::optional<RankPlace>& place, const Invocation& invocation,
                    const std::function<Result<int>()>& action);

}  // namespace verbatim
