#include "trainer/ranks/launcher.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>
#include <system_error>

namespace verbatim {
namespace {

/// The variables in which one launcher says a process's place.
struct Launcher {
  const char* name;
  const char* rank;
  const char* ranks;
  const char* rank_here;   ///< its place among those on this host
  const char* ranks_here;  ///< how many of them those are
  const char* hosts;       ///< how many hosts there are; null where it does not say
};

constexpr std::array<Launcher, 4> kLaunchers{{
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", nullptr},
    {"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", nullptr},
    {"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", nullptr},
    {"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE",
     "SLURM_STEP_NUM_NODES"},
}};

class Variables {
 public:
  explicit Variables(const ReadVariable& read) : read_(read) {}

  /// Empty where it is not set.
  std::string Text(const char* name) const {
    const char* value = name == nullptr ? nullptr : read_(name);
    return value == nullptr ? "" : value;
  }
  bool Has(const char* name) const { return !Text(name).empty(); }

  /// Both ends belong to the range.
  Result<int> Number(const char* name, int least, int most) const {
    const std::string text = Text(name);
    int number = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc() && stop == end && number >= least && number <= most) return number;
    return UsageError(fmt::format("the environment variable {} is '{}', not a number from {} to {}",
                                  name, text, least, most),
                      "Launchers set it; unset it where none started this process.");
  }

 private:
  const ReadVariable& read_;
};

/// srun sets SLURM_PROCID in a batch script too, which is no step of several tasks.
bool IsStartedBy(const Launcher& launcher, const Variables& variables) {
  if (std::string_view(launcher.name) == "srun") return variables.Has(launcher.ranks);
  return variables.Has(launcher.rank) || variables.Has(launcher.ranks);
}

Status CheckPair(const Launcher& launcher, const Variables& variables) {
  for (const auto& [missing, present] :
       {std::pair(launcher.rank, launcher.ranks), std::pair(launcher.ranks, launcher.rank)}) {
    if (variables.Has(missing)) continue;
    return UsageError(
        fmt::format("the environment variable {} is set, but {} is not", present, missing),
        fmt::format("{} sets both; unset {} to train in one process.", launcher.name, present));
  }
  return {};
}

bool IsOneHost(const Launcher& launcher, const Variables& variables, int ranks) {
  if (launcher.hosts != nullptr) return variables.Text(launcher.hosts) == "1";
  return variables.Text(launcher.ranks_here) == std::to_string(ranks);
}

/// The number of `text`, or that before its "(x…)": Slurm writes "4(x2)" for 4 on each of 2 hosts.
std::optional<int> LeadingNumber(const std::string& text) {
  int number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view rest(stop, text.data() + text.size());
  const bool is_alone = rest.empty() || (rest.starts_with("(x") && rest.find(',') == rest.npos);
  return error == std::errc() && is_alone ? std::optional(number) : std::nullopt;
}

/// Only GPUs are chosen by it, so whoever does not say it clearly is taken not to say it.
LocalRank ReadLocal(const Launcher& launcher, const Variables& variables) {
  const auto rank = LeadingNumber(variables.Text(launcher.rank_here));
  const auto ranks = LeadingNumber(variables.Text(launcher.ranks_here));
  if (!rank || !ranks || *rank < 0 || *rank >= *ranks) return {};
  return {*rank, *ranks};
}

Status ReadRendezvous(const Variables& variables, RankSetting& setting) {
  setting.host = variables.Text("MASTER_ADDR");
  const char* missing = setting.host.empty()            ? "MASTER_ADDR"
                        : !variables.Has("MASTER_PORT") ? "MASTER_PORT"
                                                        : nullptr;
  if (missing != nullptr) {
    return UsageError(fmt::format("{} started {} processes, but {} is not set", setting.launcher,
                                  setting.ranks, missing),
                      "Let MASTER_ADDR name the host of rank 0, and MASTER_PORT a free port on it: "
                      "docs/cluster.md.");
  }
  ASSIGN_OR_RETURN(const int port,
                   variables.Number("MASTER_PORT", 1, std::numeric_limits<std::uint16_t>::max()));
  setting.port = static_cast<std::uint16_t>(port);
  return {};
}

/// What torchrun's agent says besides.
void ReadAgent(const Variables& variables, RankSetting& setting) {
  setting.store_is_up = variables.Text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  if (!variables.Has("TORCHELASTIC_RUN_ID")) return;
  setting.attempt = fmt::format("{}/{}", variables.Text("TORCHELASTIC_RUN_ID"),
                                variables.Text("TORCHELASTIC_RESTART_COUNT"));
}

Result<std::optional<RankSetting>> ReadFrom(const Launcher& launcher, const Variables& variables) {
  RETURN_IF_ERROR(CheckPair(launcher, variables));
  RankSetting setting;
  setting.launcher = launcher.name;
  ASSIGN_OR_RETURN(setting.ranks, variables.Number(launcher.ranks, 1, kMaxRanks));
  ASSIGN_OR_RETURN(setting.rank, variables.Number(launcher.rank, 0, kMaxRanks - 1));
  if (setting.rank >= setting.ranks) {
    return UsageError(fmt::format("{} is {}, but {} says that there are {} processes",
                                  launcher.rank, setting.rank, launcher.ranks, setting.ranks),
                      "Ranks are counted from 0.");
  }
  if (setting.ranks == 1) return std::nullopt;
  setting.is_one_host = IsOneHost(launcher, variables, setting.ranks);
  setting.local = ReadLocal(launcher, variables);
  RETURN_IF_ERROR(ReadRendezvous(variables, setting));
  if (setting.launcher == "torchrun") ReadAgent(variables, setting);
  return setting;
}

}  // namespace

Result<std::optional<RankSetting>> ReadRankSetting(const ReadVariable& variable) {
  const Variables variables(variable);
  for (const Launcher& launcher : kLaunchers) {
    if (IsStartedBy(launcher, variables)) return ReadFrom(launcher, variables);
  }
  return std::nullopt;
}

}  // namespace verbatim
