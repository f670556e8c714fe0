// A subnet under way in a simulation: what it costs on each stage, and what it has read.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "schedule/causal_graph.h"
#include "schedule/partition.h"
#include "schedule/recompute.h"
#include "schedule/simulate/virtual_time.h"
#include "schedule/task.h"
#include "supernet/costs.h"
#include "supernet/search_space.h"

namespace verbatim {

/// Of a whole micro-batch, or of the smaller last one.
struct MicrobatchLoad {
  Ticks forward = 0;
  Ticks backward = 0;                     ///< what is computed again included
  Ticks recompute = 0;                    ///< that alone
  std::int64_t activation_bytes = 0;      ///< kept from forward to backward
  std::int64_t activation_bytes_max = 0;  ///< at most, while the stage computes the micro-batch
  std::int64_t whole_bytes = 0;           ///< what would be kept if nothing were computed again
  std::int64_t output_bytes = 0;          ///< handed to the next stage
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
  LoadMeter(const CostTable& costs, const RecomputePlan& recompute, const VirtualTime& time,
            double last_microbatch)
      : costs_(costs), recompute_(recompute), time_(time), last_(last_microbatch) {}

  StageLoad Measure(std::span<const std::int32_t> layers, int begin, int end) const;

 private:
  /// In the costs' unit, of a whole micro-batch.
  struct Sums {
    double forward = 0.0;
    double backward = 0.0;
    double recompute = 0.0;
    double update = 0.0;
    std::int64_t activation_bytes = 0;
    std::int64_t activation_bytes_max = 0;
    std::int64_t whole_bytes = 0;
  };

  void Add(std::span<const std::int32_t> layers, const RangeSegment& segment, Sums& sums) const;
  /// `share`: the micro-batch's rows per row of a whole one.
  MicrobatchLoad LoadOf(const Sums& sums, std::int64_t output_bytes, double share) const;

  const CostTable& costs_;
  const RecomputePlan& recompute_;
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
