// Which rank hosts which stages: the processes of one run, and the stage threads in each.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace verbatim {

/// Contiguous stages per rank, as equal in number as can be; the first ranks take what is left
/// over. A value; no placement bears on a run's bits.
class Placement {
 public:
  /// One process with all stages.
  explicit Placement(int stages) : stages_(stages) {}
  /// kUsage where a rank would have no stage.
  static Result<Placement> Make(std::int64_t stages, int ranks);

  int stages() const { return stages_; }
  int ranks() const { return ranks_; }
  int Begin(int rank) const;
  int End(int rank) const { return Begin(rank + 1); }
  int RankOf(int stage) const;

 private:
  Placement(int stages, int ranks) : stages_(stages), ranks_(ranks) {}

  int stages_;
  int ranks_ = 1;
};

}  // namespace verbatim
