// Measured costs: what every layer takes on this machine (supernet/costs.h).
#pragma once

#include <cstdint>
#include <functional>

#include "base/status.h"
#include "supernet/costs.h"
#include "trainer/experiment.h"

namespace verbatim {

struct ProfileOptions {
  std::int64_t repeat = 10;  ///< measurements of each layer, after one that does not count
  /// Measurements done, of (repeat + 1) · layers; false stops. Empty: nobody asks.
  std::function<bool(std::int64_t done)> on_progress;
};

/// The medians of forward, backward and update of every layer, in seconds, on the first micro-batch
/// of subnet 0; bytes are AnalyticCosts'. Rounds visit all layers in turn, as training does, so
/// that a machine's drift spreads over them and each finds its weights out of the cache. The loss
/// is no layer's and is not measured. Uses the calling thread and its LibTorch threads, on the
/// experiment's device. Leaves optimizer states and buffers changed: prepare an experiment for it
/// alone. kFailed where it was stopped; throws what LibTorch throws.
Result<CostTable> MeasureCosts(Experiment& experiment, const ProfileOptions& options);

}  // namespace verbatim
