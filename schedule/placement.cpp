#include "schedule/placement.h"

#include <fmt/format.h>

#include <algorithm>

namespace verbatim {

Result<Placement> Placement::Make(std::int64_t stages, int ranks) {
  if (ranks < 1 || stages < ranks) {
    return UsageError(
        fmt::format("--stages {}: {} ranks need a stage each", stages, ranks),
        fmt::format("use --stages {} or a multiple of it, or start fewer ranks", ranks));
  }
  return Placement(static_cast<int>(stages), ranks);
}

int Placement::Begin(int rank) const {
  return rank * (stages_ / ranks_) + std::min(rank, stages_ % ranks_);
}

int Placement::RankOf(int stage) const {
  const int fewer = stages_ / ranks_;
  const int more = stages_ % ranks_;  // ranks with one more than `fewer`
  const int in_larger = more * (fewer + 1);
  return stage < in_larger ? stage / (fewer + 1) : more + (stage - in_larger) / fewer;
}

}  // namespace verbatim
