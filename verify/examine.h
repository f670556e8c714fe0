// Examines a record by itself: integrity, then the stream, then the causal audit, then the trees
// and seals over its rows. Executes nothing and needs no data; one pass over the rows, in memory
// that does not grow with the run.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "store/reader.h"
#include "verify/layer_table.h"
#include "verify/verdict.h"

namespace verbatim {

/// Names of the checks, in the order in which a verdict lists them.
inline constexpr const char* kCheckFile = "file";
inline constexpr const char* kCheckRun = "run";
inline constexpr const char* kCheckLayers = "layers";
inline constexpr const char* kCheckSubnets = "subnets";
inline constexpr const char* kCheckSteps = "steps";  ///< of a step run, in its place
inline constexpr const char* kCheckStream = "stream";
inline constexpr const char* kCheckCausality = "causality";
inline constexpr const char* kCheckEvaluations = "evaluations";
inline constexpr const char* kCheckTrees = "trees";
inline constexpr const char* kCheckSeals = "seals";
inline constexpr const char* kCheckCheckpoints = "checkpoints";
inline constexpr const char* kCheckReexecution = "re-execution";

/// `record` is the path as typed, for messages and to find its checkpoints. `progress` (may be
/// empty) is told the number of subnets looked at. What cannot be read makes a damaged verdict,
/// never an error. The verdict's re-execution check is left "not run".
Verdict ExamineRecord(const RecordReader& reader, const std::string& record,
                      const std::function<void(std::int64_t)>& progress = {});

/// The same in steps, for a caller that has a use of its own for the rows: everything but the
/// subnets is read at the start, and each subnet is shown to it. Not thread-safe.
class RecordExamination {
 public:
  /// SQLite's own checks read the whole file once more. Without them what is read is still checked,
  /// value by value and by its leaves and seals, but not what nobody reads.
  enum class FileCheck { kRun, kLeaveOut };

  /// Keeps a reference to `reader`.
  RecordExamination(const RecordReader& reader, const std::string& record, FileCheck file_check);
  ~RecordExamination();
  RecordExamination(const RecordExamination&) = delete;
  RecordExamination& operator=(const RecordExamination&) = delete;

  /// The layers, where run, spec and layers are sound; else null, and no subnet can be looked at.
  const LayerTable* table() const;
  /// So far.
  const Verdict& verdict() const;
  /// What of a subnet is to be read.
  ReadOptions options() const;
  /// All subnets, in the order in which they are read. False where the row is damaged.
  bool Visit(const SubnetRow& subnet);
  /// Why the subnets from here on cannot be read.
  void Stop(const Error& error);
  /// Call once, at the end.
  Verdict Finish();

 private:
  class Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace verbatim
