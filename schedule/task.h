// A task: what one stage does with one micro-batch of one subnet.
#pragma once

#include <compare>
#include <cstdint>

namespace verbatim {

enum class TaskKind : std::uint8_t { kForward, kBackward };

/// The last micro-batch's backward includes the update of the stage's layers.
struct Task {
  TaskKind kind = TaskKind::kForward;
  std::int64_t seq = 0;
  std::int32_t microbatch = 0;

  bool operator==(const Task&) const = default;
};

/// Lowest subnet first, then lowest micro-batch.
struct TaskOrder {
  bool operator()(const Task& a, const Task& b) const {
    if (a.seq != b.seq) return a.seq < b.seq;
    if (a.microbatch != b.microbatch) return a.microbatch < b.microbatch;
    return a.kind < b.kind;
  }
};

}  // namespace verbatim
