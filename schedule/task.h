// A task: what one stage does with one micro-batch of one subnet.
#pragma once

#include <compare>
#include <cstdint>

namespace verbatim {

/// kUpdate is the stage's part of a subnet's update, once its last micro-batch's backward is done
/// there; its `microbatch` is that last one.
enum class TaskKind : std::uint8_t { kForward, kBackward, kUpdate };

inline const char* NameOf(TaskKind kind) {
  switch (kind) {
    case TaskKind::kForward:
      return "forward";
    case TaskKind::kBackward:
      return "backward";
    case TaskKind::kUpdate:
      return "update";
  }
  return "task";
}

struct Task {
  TaskKind kind = TaskKind::kForward;
  std::int64_t seq = 0;
  std::int32_t microbatch = 0;

  bool operator==(const Task&) const = default;
};

/// Contiguous stages: [begin, end).
struct StagePart {
  int begin = 0;
  int end = 0;

  bool Contains(int stage) const { return begin <= stage && stage < end; }
};

/// A subnet's part on a stage, whose layers are there, or wanted there (schedule/layer_cache.h).
struct Residency {
  std::int64_t seq = 0;
  int stage = 0;
  auto operator<=>(const Residency&) const = default;
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
