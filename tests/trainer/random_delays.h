// Random pauses between the tasks of a training, and between its copies of layers.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <thread>

#include "trainer/stage_probe.h"

namespace verbatim {

/// Keeps a stage, or a copy thread, busy for 0 … 400 µs before some tasks, by draws of its own. It
/// spins: only the order of events between stages matters, never how long anything takes.
class RandomDelays : public StageProbe {
 public:
  explicit RandomDelays(std::uint32_t seed) : seed_(seed) {}

  void BeforeTask(int stage, const Task& task) override {
    const auto microbatch = static_cast<std::uint32_t>(task.microbatch);
    Pause({seed_, static_cast<std::uint32_t>(stage), static_cast<std::uint32_t>(task.seq),
           microbatch, static_cast<std::uint32_t>(task.kind)});
  }

  void BeforeTransfer(const Transfer& transfer) override {
    Pause({seed_, static_cast<std::uint32_t>(transfer.stage),
           static_cast<std::uint32_t>(transfer.layer), transfers_++});
  }

 private:
  static void Pause(std::initializer_list<std::uint32_t> key) {
    std::seed_seq words(key);
    std::mt19937 random(words);
    if (random() % 3 != 0) return;
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(random() % 400);
    while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
  }

  const std::uint32_t seed_;
  std::atomic<std::uint32_t> transfers_ = 0;
};

}  // namespace verbatim
