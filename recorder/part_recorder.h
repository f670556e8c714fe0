// Keeps a rank's parts in its file: a bounded queue and a writer thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "base/durable_file.h"
#include "base/status.h"
#include "recorder/part_file.h"
#include "recorder/part_sink.h"

namespace verbatim {

struct PartRecorderOptions {
  std::size_t queue_capacity = 256;       ///< parts; WaitForRoom blocks at as many
  std::int64_t commit_interval_ms = 200;  ///< a part is on the disk no later than this
};

/// A part is given to the system as soon as the thread gets to it, and so survives this process
/// from then on. Thread-safe as a PartSink. No part is ever dropped: once writing has failed, every
/// call returns that error.
class PartRecorder : public PartSink {
 public:
  /// A new run's file. kUsage where there is one already, which may be all that an earlier run
  /// left, unless `overwrite`; what is no part file is never replaced.
  static Result<std::unique_ptr<PartRecorder>> Create(const std::filesystem::path& path,
                                                      const PartSession& session, bool overwrite,
                                                      const PartRecorderOptions& options = {});
  /// Goes on with the file of a run that is resumed, without its torn tail; or makes it, where
  /// there is none. kUsage where it is another run's or another rank's; PartReader's errors.
  static Result<std::unique_ptr<PartRecorder>> Reopen(const std::filesystem::path& path,
                                                      const PartSession& session,
                                                      const PartRecorderOptions& options = {});
  /// What Create refuses.
  static Status CheckNew(const std::filesystem::path& path, bool overwrite);
  /// Adds frames to a file that ends with a whole one.
  static std::unique_ptr<PartRecorder> Start(DurableFile file,
                                             const PartRecorderOptions& options = {});

  /// Waits until all parts are on the disk, closes the file and joins the thread; returns the first
  /// error. Call once, from one thread, after training. The destructor does the same, if need be.
  virtual Status Close() = 0;
};

}  // namespace verbatim
