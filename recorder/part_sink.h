// Where a rank keeps what it did itself. The only interface between a trainer and whatever keeps
// it. Calls come from any thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace verbatim {

class PartSink {
 public:
  virtual ~PartSink() = default;

  /// Takes this rank's part of a subnet that is finished here, as EncodeReport wrote it. Does not
  /// wait. An error stops the training.
  virtual Status AddPart(std::int64_t seq, std::string report) = 0;
  /// Waits while too many parts are not written yet. An error stops the training.
  virtual Status WaitForRoom() = 0;
};

}  // namespace verbatim
