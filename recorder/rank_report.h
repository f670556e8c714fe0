// What a rank other than 0 saw of its part of a subnet, as it tells rank 0, whose observer sees it
// as if it had happened there.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "recorder/observer.h"
#include "store/record.h"

namespace verbatim {

/// One rank's part of one finished subnet.
struct RankReport {
  std::optional<float> loss;  ///< of the rank with the last stage
  std::vector<AccessRow> accesses;
  std::vector<ActivationRow> activations;
  std::vector<ActivityRow> activity;
  // Not of the subnet: the rank's counts so far (TrainingOutcome).
  std::int64_t versions_moved = 0;
  std::int64_t bytes_moved = 0;
};

/// Sorts the rows.
std::string EncodeReport(std::int64_t seq, RankReport report);
/// The inverse; kBadInput for what EncodeReport does not write.
Result<RankReport> DecodeReport(std::int64_t seq, std::string_view bytes);

/// Tells the observer everything but that the subnet is finished.
void Replay(std::int64_t seq, const RankReport& report, Observer& observer);

/// Collects the rows of subnets in flight. Thread-safe.
class RankObserver : public Observer {
 public:
  void OnSubnetStarted(std::int64_t, std::vector<std::uint16_t>,
                       std::vector<std::uint32_t>) override {}
  void OnBatch(std::int64_t, const Digest&) override {}
  void OnAccess(std::int64_t seq, const AccessRow& access) override;
  void OnActivation(std::int64_t seq, const ActivationRow& activation) override;
  void OnActivity(std::int64_t seq, const ActivityRow& activity) override;
  void OnLoss(std::int64_t, float) override {}
  Status OnSubnetFinished(std::int64_t) override { return {}; }

  /// What there is of a subnet, which is finished on this rank.
  RankReport Take(std::int64_t seq);

 private:
  std::mutex mutex_;
  std::map<std::int64_t, RankReport> open_;
};

}  // namespace verbatim
