// What a launcher tells a process about its place among the others: torchrun, Slurm's srun, the
// mpirun of Open MPI and of MPICH's kind (Hydra).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/status.h"

namespace verbatim {

/// Most processes of one run.
inline constexpr int kMaxRanks = 1024;

/// A process's place among those that its launcher started on one host.
struct LocalRank {
  int rank = 0;
  int ranks = 1;
};

/// A process's place in a run of several.
struct RankSetting {
  int rank = 0;
  int ranks = 1;
  std::string launcher;      ///< "torchrun", "srun", "mpirun", for messages
  std::string host;          ///< of the rendezvous: MASTER_ADDR
  std::uint16_t port = 0;    ///< of the rendezvous: MASTER_PORT
  bool store_is_up = false;  ///< the launcher serves the rendezvous itself (torchrun's agent)
  std::string attempt;       ///< differs between a launcher's restarts of one run, else empty
  bool is_one_host = false;  ///< the launcher says that all ranks are on this host
  LocalRank local;           ///< 0 of 1 where the launcher does not say
};

/// Reads variables like std::getenv; null where there is none.
using ReadVariable = std::function<const char*(const char*)>;

/// Nothing where no launcher started this process, or it started one alone. kUsage where variables
/// contradict each other or are no numbers, or the rendezvous is not named (MASTER_ADDR and
/// MASTER_PORT, which srun and mpirun leave to the user): the message names the variable and what
/// to set. Recognised, first come: torchrun (RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, TORCHELASTIC_*),
/// Open MPI (OMPI_COMM_WORLD_*), Hydra and PMI (PMI_RANK, PMI_SIZE), Slurm (SLURM_PROCID,
/// SLURM_STEP_NUM_TASKS). Slurm's come last: an mpirun within a job sees those of its own daemon.
Result<std::optional<RankSetting>> ReadRankSetting(const ReadVariable& variable);

}  // namespace verbatim
