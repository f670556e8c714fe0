// Turns a run's interleaved events into whole SubnetRows and hands each to a sink when finished.
#pragma once

#include <functional>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "recorder/observer.h"

namespace verbatim {

/// Thread-safe. CHECKs the order of calls that Observer asks for. The sink is called outside the
/// lock, from the thread that finished the subnet, so sinks must be thread-safe too.
class SubnetAssembler : public Observer {
 public:
  using Sink = std::function<Status(SubnetRow&&)>;
  explicit SubnetAssembler(Sink sink) : sink_(std::move(sink)) {}

  void OnSubnetStarted(std::int64_t seq, std::vector<std::uint16_t> choices,
                       std::vector<std::uint32_t> samples) override;
  void OnBatch(std::int64_t seq, const Digest& batch) override;
  void OnAccess(std::int64_t seq, const AccessRow& access) override;
  void OnActivation(std::int64_t seq, const ActivationRow& activation) override;
  void OnActivity(std::int64_t seq, const ActivityRow& activity) override;
  void OnLoss(std::int64_t seq, float loss) override;
  /// Sorts accesses by layer, activations and activities by their keys, adds the subnet's leaves,
  /// and calls the sink.
  Status OnSubnetFinished(std::int64_t seq) override;

 private:
  SubnetRow& OpenSubnet(std::int64_t seq);

  Sink sink_;
  std::mutex mutex_;
  std::unordered_map<std::int64_t, SubnetRow> open_;
};

}  // namespace verbatim
