// Proves that each launcher's variables are understood, and that half of them are refused.
#include "trainer/ranks/launcher.h"

#include <gmock/gmock.h>

namespace verbatim {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

Result<std::optional<RankSetting>> Read(const Variables& variables) {
  return ReadRankSetting([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

RankSetting Sound(const Variables& variables) {
  const auto setting = Read(variables);
  EXPECT_TRUE(setting.has_value()) << setting.error().message;
  EXPECT_TRUE(setting && setting->has_value());
  return setting && *setting ? **setting : RankSetting{};
}

Variables With(Variables variables, const Variables& others) {
  for (const auto& [name, value] : others) variables[name] = value;
  return variables;
}

const Variables kRendezvous{{"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}};
const Variables kTorchrun = With(kRendezvous, {{"RANK", "3"},
                                               {"WORLD_SIZE", "4"},
                                               {"LOCAL_RANK", "1"},
                                               {"LOCAL_WORLD_SIZE", "2"},
                                               {"TORCHELASTIC_RUN_ID", "job"},
                                               {"TORCHELASTIC_RESTART_COUNT", "2"},
                                               {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
const Variables kOpenMpi = With(kRendezvous, {{"OMPI_COMM_WORLD_RANK", "1"},
                                              {"OMPI_COMM_WORLD_SIZE", "2"},
                                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
const Variables kSlurm = With(kRendezvous, {{"SLURM_PROCID", "5"},
                                            {"SLURM_NTASKS", "6"},
                                            {"SLURM_STEP_NUM_TASKS", "6"},
                                            {"SLURM_STEP_NUM_NODES", "2"}});

TEST(Launcher, Torchrun) {
  const RankSetting setting = Sound(kTorchrun);
  EXPECT_EQ(setting.rank, 3);
  EXPECT_EQ(setting.ranks, 4);
  EXPECT_EQ(setting.launcher, "torchrun");
  EXPECT_EQ(setting.host, "node1");
  EXPECT_EQ(setting.port, 29500);
  EXPECT_TRUE(setting.store_is_up);
  EXPECT_EQ(setting.attempt, "job/2");
  EXPECT_FALSE(setting.is_one_host);
  EXPECT_TRUE(Sound(With(kTorchrun, {{"LOCAL_WORLD_SIZE", "4"}})).is_one_host);
  EXPECT_EQ(setting.local.rank, 1);
  EXPECT_EQ(setting.local.ranks, 2);
  EXPECT_FALSE(Sound(With(kTorchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}})).store_is_up);
}

TEST(Launcher, OpenMpi) {
  const RankSetting setting = Sound(kOpenMpi);
  EXPECT_EQ(setting.rank, 1);
  EXPECT_EQ(setting.ranks, 2);
  EXPECT_EQ(setting.launcher, "mpirun");
  EXPECT_TRUE(setting.is_one_host);
  EXPECT_FALSE(setting.store_is_up);
  EXPECT_EQ(setting.attempt, "");
  EXPECT_FALSE(Sound(With(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}})).is_one_host);
}

TEST(Launcher, SaysWhichOfAHostsRanksItIs) {
  const auto slurm = [](const char* rank, const char* per_host) {
    return Sound(With(kSlurm, {{"SLURM_LOCALID", rank}, {"SLURM_STEP_TASKS_PER_NODE", per_host}}))
        .local;
  };
  EXPECT_EQ(slurm("2", "3(x2)").rank, 2);
  EXPECT_EQ(slurm("2", "3(x2)").ranks, 3);
  EXPECT_EQ(slurm("2", "6").ranks, 6);
  // Not said, not for every host alike, or nonsense.
  for (const auto& [rank, per_host] : {std::pair{"", "3(x2)"},
                                       {"0", ""},
                                       {"0", "4,2"},
                                       {"0", "2(x2),1"},
                                       {"3", "3(x2)"},
                                       {"-1", "3"},
                                       {"1", "x"}}) {
    EXPECT_EQ(slurm(rank, per_host).rank, 0) << rank << " " << per_host;
    EXPECT_EQ(slurm(rank, per_host).ranks, 1) << rank << " " << per_host;
  }
  EXPECT_EQ(Sound(With(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_RANK", "1"}})).local.rank, 1);
}

TEST(Launcher, Hydra) {
  const RankSetting setting =
      Sound(With(kRendezvous, {{"PMI_RANK", "0"}, {"PMI_SIZE", "3"}, {"MPI_LOCALNRANKS", "3"}}));
  EXPECT_EQ(setting.rank, 0);
  EXPECT_EQ(setting.ranks, 3);
  EXPECT_EQ(setting.launcher, "mpirun");
  EXPECT_TRUE(setting.is_one_host);
}

TEST(Launcher, Slurm) {
  const RankSetting setting = Sound(kSlurm);
  EXPECT_EQ(setting.rank, 5);
  EXPECT_EQ(setting.ranks, 6);
  EXPECT_EQ(setting.launcher, "srun");
  EXPECT_FALSE(setting.is_one_host);
  EXPECT_TRUE(Sound(With(kSlurm, {{"SLURM_STEP_NUM_NODES", "1"}})).is_one_host);
}

/// Launchers that one starts within another's job.
TEST(Launcher, TheInnermostCounts) {
  EXPECT_EQ(Sound(With(kSlurm, kTorchrun)).launcher, "torchrun");
  const RankSetting setting = Sound(With(With(kSlurm, {{"SLURM_PROCID", "0"}}), kOpenMpi));
  EXPECT_EQ(setting.launcher, "mpirun");
  EXPECT_EQ(setting.rank, 1);
}

TEST(Launcher, OneProcessIsNoRunOfSeveral) {
  for (const Variables& alone : {Variables{}, Variables{{"RANK", "0"}, {"WORLD_SIZE", "1"}},
                                 // A batch script of Slurm, before any srun.
                                 Variables{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}},
                                 Variables{{"SLURM_PROCID", "0"}, {"SLURM_STEP_NUM_TASKS", "1"}},
                                 Variables{{"RANK", ""}, {"WORLD_SIZE", ""}}, kRendezvous}) {
    const auto setting = Read(alone);
    ASSERT_TRUE(setting.has_value()) << setting.error().message;
    EXPECT_FALSE(setting->has_value());
  }
}

TEST(Launcher, RefusesWhatContradicts) {
  const struct {
    Variables variables;
    std::string says, hint;
  } cases[] = {
      {{{"WORLD_SIZE", "4"}}, "WORLD_SIZE is set, but RANK is not", "unset WORLD_SIZE"},
      {{{"RANK", "1"}}, "RANK is set, but WORLD_SIZE is not", "unset RANK"},
      {With(kTorchrun, {{"RANK", "4"}}), "RANK is 4, but WORLD_SIZE says", "from 0"},
      {With(kTorchrun, {{"RANK", "-1"}}), "RANK is '-1', not a number from 0", "Launchers set it"},
      {With(kTorchrun, {{"WORLD_SIZE", "4x"}}), "WORLD_SIZE is '4x'", ""},
      {With(kTorchrun, {{"WORLD_SIZE", "99999999999999"}}), "WORLD_SIZE is", ""},
      {With(kOpenMpi, {{"MASTER_ADDR", ""}}), "mpirun started 2 processes, but MASTER_ADDR",
       "docs/cluster.md"},
      {With(kSlurm, {{"MASTER_PORT", ""}}), "srun started 6 processes, but MASTER_PORT",
       "a free port"},
      {With(kSlurm, {{"MASTER_PORT", "0"}}), "MASTER_PORT is '0'", ""},
      {With(kSlurm, {{"MASTER_PORT", "65536"}}), "MASTER_PORT is '65536'", ""},
  };
  for (const auto& [variables, says, hint] : cases) {
    const auto setting = Read(variables);
    ASSERT_FALSE(setting.has_value()) << says;
    EXPECT_EQ(setting.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(setting.error().message, HasSubstr(says));
    EXPECT_THAT(setting.error().hint, HasSubstr(hint));
  }
}

}  // namespace
}  // namespace verbatim
