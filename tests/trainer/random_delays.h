// Random pauses between the tasks of a training.
#pragma once

#include <chrono>
#include <cstdint>
#include <random>
#include <thread>

#include "trainer/stage_probe.h"

namespace verbatim {

/// Keeps a stage busy for 0 … 400 µs before some tasks, by a draw of its own per stage. It spins:
/// only the order of events between stages matters, never how long anything takes.
class RandomDelays : public StageProbe {
 public:
  explicit RandomDelays(std::uint32_t seed) : seed_(seed) {}

  void BeforeTask(int stage, const Task& task) override {
    const auto microbatch = static_cast<std::uint32_t>(task.microbatch);
    std::seed_seq words{seed_, static_cast<std::uint32_t>(stage),
                        static_cast<std::uint32_t>(task.seq), microbatch,
                        static_cast<std::uint32_t>(task.kind)};
    std::mt19937 random(words);
    if (random() % 3 != 0) return;
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(random() % 400);
    while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
  }

 private:
  std::uint32_t seed_;
};

}  // namespace verbatim
