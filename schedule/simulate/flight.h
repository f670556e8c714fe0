// A subnet under way in a simulation: what it costs on each stage, and what it has read.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "schedule/causal_graph.h"
#include "schedule/partition.h"
#include "schedule/simulate/virtual_time.h"
#include "schedule/task.h"
#include "supernet/costs.h"
#include "supernet/search_space.h"

namespace verbatim {

/// Of a whole micro-batch, or of the smaller last one.
struct MicrobatchLoad {
  Ticks forward = 0;
  Ticks backward = 0;
  std::int64_t activation_bytes = 0;  ///< kept from forward to backward
  std::int64_t output_bytes = 0;      ///< handed to the next stage
};

/// A subnet's part on one stage: positions [begin, end).
struct StageLoad {
  int begin = 0;
  int end = 0;
  MicrobatchLoad whole;
  MicrobatchLoad last;
  Ticks update = 0;

  Ticks DurationOf(const Task& task, bool is_last) const;
};

struct Flight {
  std::vector<std::int32_t> layers;              ///< by position
  std::vector<CausalPredecessors> predecessors;  ///< by position
  std::vector<std::int64_t> read;                ///< by position: the version seen
  std::vector<bool> copied;      ///< by position: read from a copy sent to the stage
  std::vector<StageLoad> loads;  ///< by stage
};

/// How much the parts of a subnet cost.
class LoadMeter {
 public:
  /// References must outlive it.
  LoadMeter(const CostTable& costs, const VirtualTime& time, double last_microbatch)
      : costs_(costs), time_(time), last_(last_microbatch) {}

  StageLoad Measure(std::span<const std::int32_t> layers, int begin, int end) const;

 private:
  const CostTable& costs_;
  const VirtualTime& time_;
  const double last_;
};

/// The subnets under way, by seq, which comes in order without gaps. Finished ones are used again.
class Flights {
 public:
  Flight& Add();
  Flight& At(std::int64_t seq) { return *flights_[static_cast<std::size_t>(seq - first_)]; }
  bool Contains(std::int64_t seq) const;
  void Remove(std::int64_t seq);

 private:
  std::int64_t first_ = 0;
  std::deque<std::unique_ptr<Flight>> flights_;  ///< from `first_` on; null where finished
  std::vector<std::unique_ptr<Flight>> free_;
};

}  // namespace verbatim
