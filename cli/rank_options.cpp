#include "cli/rank_options.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "cli/commands.h"
#include "cli/forward.h"
#include "schedule/placement.h"

namespace verbatim {
namespace {

constexpr std::int64_t kMaxTimeout = 7 * 24 * 3600;
constexpr const char* kTokenVariable = "VERBATIM_TOKEN";

/// A token's file holds it and perhaps an end of line.
Result<std::string> ReadToken(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string token{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.is_open() || file.bad() || token.empty()) {
    return BadInput(fmt::format("--token-file {} cannot be read, or is empty", path.string()),
                    "Make one: openssl rand -hex 32 > run.token; chmod 600 run.token");
  }
  struct stat status {};
  if (stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && (status.st_mode & 077) != 0) {
    return UsageError(fmt::format("others than its owner may read --token-file {}", path.string()),
                      fmt::format("chmod 600 {}", path.string()));
  }
  while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  return token;
}

Result<std::string> FindToken(const RankOptions& options) {
  const char* variable = std::getenv(kTokenVariable);
  const std::string given = variable == nullptr ? "" : variable;
  if (!options.token_file) return given;
  if (given.empty()) return ReadToken(*options.token_file);
  return UsageError(fmt::format("--token-file and {} both give a token", kTokenVariable),
                    "Leave one of them out.");
}

}  // namespace

void AddRankOptions(CLI::App& command, RankOptions& options) {
  const std::string group = "Several processes (torchrun, srun, mpirun; docs/cluster.md)";
  command
      .add_option("--interface", options.interface,
                  "Network interface, or an address of this host, to listen at for the other "
                  "processes; the one that leads to MASTER_ADDR if not given. Example: --interface "
                  "eth0")
      ->type_name("NAME|ADDRESS")
      ->check(NamedPath())
      ->group(group);
  command
      .add_option("--token-file", options.token_file,
                  "File with the secret that the processes of a run share, instead of "
                  "VERBATIM_TOKEN; needed on several hosts. Example: --token-file run.token")
      ->type_name("FILE")
      ->check(NamedPath())
      ->group(group);
  command
      .add_flag("--encrypt", options.encrypt,
                "Encrypts what the processes send each other. Example: --encrypt")
      ->group(group);
  command
      .add_option("--join-timeout", options.join_timeout_s,
                  "How long to wait for all processes at the beginning. Example: --join-timeout "
                  "900")
      ->type_name("SECONDS")
      ->check(WholeNumber(1, kMaxTimeout))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--peer-timeout", options.peer_timeout_s,
                  "A process that is silent for longer is given up, and the run with it. Example: "
                  "--peer-timeout 120")
      ->type_name("SECONDS")
      ->check(WholeNumber(1, kMaxTimeout))
      ->capture_default_str()
      ->group(group);
}

Result<std::optional<RankPlace>> FindPlace(const RankOptions& options) {
  ASSIGN_OR_RETURN(const auto rank,
                   ReadRankSetting([](const char* name) { return std::getenv(name); }));
  if (!rank) return std::nullopt;
  // For the engine's process: LibTorch's own log has stack traces of what is reported better here.
  setenv("TORCH_CPP_LOG_LEVEL", "FATAL", /*overwrite=*/0);
  RankPlace place;
  place.rank = *rank;
  place.network.interface = options.interface;
  // The others are to hear of it.
  auto token = FindToken(options);
  token ? void(place.network.token = *std::move(token)) : void(place.failure = token.error());
  place.network.encrypt = options.encrypt;
  place.network.join_timeout_ms = options.join_timeout_s * 1000;
  place.network.peer_timeout_ms = options.peer_timeout_s * 1000;
  return place;
}

Status SettleStages(const RankPlace& place, LayoutOptions& layout) {
  if (!layout.stages_were_given) layout.stages = place.rank.ranks;
  RETURN_IF_ERROR(Placement::Make(layout.stages, place.rank.ranks));
  return {};
}

Status SettleDevice(const std::string& device, RankPlace& place) {
  if (device == "cpu") return {};
  if (device != "cuda") {
    return NotOnRanks(fmt::format("--device {} is used", device),
                      "Use --device cuda: each process takes its share of the GPUs that it sees.");
  }
  if (place.network.encrypt) {
    return UsageError("--encrypt does not cover what GPUs of several processes send each other",
                      "Leave it out on a network of the run's own, or use --device cpu.");
  }
  place.device = device;
  // A transfer waits on the GPU for the other end: nothing may wait behind it that it knows nothing
  // of, neither in a hardware queue nor for a kernel to be loaded (docs/gpu.md).
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/0);
  setenv("CUDA_MODULE_LOADING", "EAGER", /*overwrite=*/0);
  return {};
}

tl::unexpected<Error> NotOnRanks(const std::string& what, const std::string& hint) {
  return UsageError(fmt::format("{} in one process, not in several", what), hint);
}

Result<int> OnRanks(const std::optional<RankPlace>& place, const Invocation& invocation,
                    const std::function<Result<int>()>& action) {
  if (!place) return action();
  Result<int> result = place->failure ? tl::unexpected(*place->failure) : action();
  if (invocation.engine == nullptr) {
    // Returns only where there is no engine either.
    (void)ForwardToEngine(invocation.argv, Numerics::kNative);
    return result;
  }
  invocation.engine->Dismiss(*place, result ? std::nullopt : std::optional(result.error()));
  return result;
}

}  // namespace verbatim
