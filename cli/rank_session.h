// This process's membership in a run of several. Linked into verbatim-engine only.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "cli/rank_options.h"
#include "trainer/ranks/job.h"
#include "trainer/ranks/network.h"

namespace verbatim {

/// Where a process is alone nothing is joined, and everything here does nothing.
class RankSession {
 public:
  RankSession();
  ~RankSession();
  RankSession(const RankSession&) = delete;
  RankSession& operator=(const RankSession&) = delete;

  /// Rank 0: joins the others and gives them this job. Call once at most. See Join for errors.
  Status Lead(const RankPlace& place, const RankJob& job);
  /// Another rank: joins, and returns what to do; nothing where there is nothing to do.
  Result<std::optional<RankJob>> Follow(const RankPlace& place);
  /// Any rank: tells the others why there will be no run; rank 0 without a reason: that there is
  /// nothing to do. Does nothing once it has joined.
  void Dismiss(const RankPlace& place, const std::optional<Error>& why);

  /// For TrainingOptions::network; null before it has joined.
  Network* network() const;
  /// For TrainingOptions::has_stuck_stage: only a run on ranks leaves a stage alone.
  std::atomic<bool>* has_stuck_stage() { return &has_stuck_stage_; }
  /// What is sent goes out. Where training has not begun, the others are told that it will not:
  /// `why` (empty: "it stopped").
  void Leave(const std::string& why);

 private:
  class WatchedNetwork;

  Result<std::string> Enter(const RankPlace& place, const std::optional<Error>& failure,
                            const std::string& job_json);

  bool has_joined_ = false;
  std::atomic<bool> has_stuck_stage_ = false;
  std::unique_ptr<WatchedNetwork> network_;
};

}  // namespace verbatim
