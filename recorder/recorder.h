// Records a run: a bounded queue and a writer thread between the stages and the SQLite file.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>

#include "base/status.h"
#include "recorder/observer.h"
#include "store/writer.h"

namespace verbatim {

struct RecorderOptions {
  std::size_t queue_capacity = 256;       ///< subnets; a full queue blocks OnSubnetFinished
  std::size_t batch_max = 64;             ///< subnets per transaction
  std::int64_t commit_interval_ms = 200;  ///< a finished subnet is committed no later than this
  /// Is handed a head of what is committed, by the writer thread, whenever the subnets under it
  /// have passed a further multiple of `head_every` (0: never), and by Close when the run has
  /// ended. An error of its stops the recorder like one of the writer's.
  std::function<Status(Head)> on_head;
  std::int64_t head_every = 0;
};

/// Thread-safe as an Observer. No row is ever dropped: once the writer has failed, every
/// OnSubnetFinished returns that error.
class Recorder : public Observer {
 public:
  /// Takes a record just created and starts the writer thread.
  static std::unique_ptr<Recorder> Start(std::unique_ptr<RecordWriter> writer,
                                         const RecorderOptions& options = {});

  /// Records a whole subnet, instead of the events of one. Otherwise as OnSubnetFinished.
  virtual Status AddSubnet(SubnetRow&& subnet) = 0;

  /// Records a checkpoint after all subnets that finished before the call, and deletes all but the
  /// `keep` newest. Returns once that is safe on the disk, so that files which no row names any
  /// more can go; or with the writer's first error. One thread at a time, none of a stage's.
  virtual Status AddCheckpoint(const CheckpointRow& row, std::int64_t keep) = 0;

  /// Waits until all finished subnets are committed, writes evaluations and the end of the run,
  /// closes the file and joins the thread. Call once, from one thread, after training. Returns the
  /// writer's first error. Without it the destructor commits what is queued and leaves the run
  /// "running".
  virtual Status Close(RunStatus status, const std::string& detail,
                       std::span<const EvaluationRow> evaluations) = 0;
};

}  // namespace verbatim
