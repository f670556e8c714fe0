// How training tells the outside what happened. The only interface between a trainer and whatever
// records, compares or displays a run; any trainer can call it.
//
// Calls come from any thread. For one subnet: OnSubnetStarted first, OnSubnetFinished last, with
// everything else between. Different subnets interleave freely.
#pragma once

#include <cstdint>
#include <vector>

#include "base/digest.h"
#include "base/status.h"
#include "store/record.h"

namespace verbatim {

class Observer {
 public:
  virtual ~Observer() = default;

  virtual void OnSubnetStarted(std::int64_t seq, std::vector<std::uint16_t> choices,
                               std::vector<std::uint32_t> samples) = 0;
  virtual void OnBatch(std::int64_t seq, const Digest& batch) = 0;
  /// After the layer's update. `access` has what the recording level asks for.
  virtual void OnAccess(std::int64_t seq, const AccessRow& access) = 0;
  virtual void OnActivation(std::int64_t seq, const ActivationRow& activation) = 0;
  virtual void OnActivity(std::int64_t seq, const ActivityRow& activity) = 0;
  virtual void OnLoss(std::int64_t seq, float loss) = 0;
  /// The subnet is done. May block (back-pressure). An error stops the training.
  virtual Status OnSubnetFinished(std::int64_t seq) = 0;
};

}  // namespace verbatim
