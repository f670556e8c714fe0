// Records the run of any trainer: a row per step, a layer per tensor of its model.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/status.h"
#include "recorder/step_layer.h"
#include "recorder/step_spec.h"
#include "store/record.h"
#include "store/step_facts.h"

namespace verbatim {

/// What is said of a run before its first step.
struct StepRun {
  StepSpec spec;
  /// "losses": no digests of layers; "weights": after every step; "full": gradients or captured
  /// tensors too.
  std::string record_level = "weights";
  std::string tool_version;  ///< of the library that records
  std::string folder;        ///< where the trainer was started; absolute
  std::string command_line;
  std::string device = "cpu";
  std::int64_t steps_planned = 0;  ///< that will be recorded; 0: not known
};

struct StepRecorderOptions {
  bool overwrite = false;           ///< as RecordWriter::Create
  std::filesystem::path head_file;  ///< heads are added to it (store/head.h); empty: none
  std::int64_t head_every = 0;      ///< recorded steps; 0: only at the end
};

/// What a step left of one versioned layer.
struct StepDigests {
  std::int32_t layer = 0;
  std::optional<Digest> weights;  ///< at every level but "losses"
  std::optional<Digest>
      optimizer_state;              ///< of parameters, where the spec says so and there is any
  std::optional<Digest> gradients;  ///< likewise, at level "full"
};

/// One step. Digests of weights, gradients and captured tensors are DigestTensor's; of the
/// optimizer's state, the batch and the generators they are over named tensors.
struct StepRow {
  StepFacts facts;
  std::optional<std::uint32_t> loss_bits;  ///< the float32 loss, bit for bit
  std::optional<Digest> batch;
  std::vector<StepDigests> layers;  ///< every versioned layer, ascending; at level "losses" none
  /// Captured tensors: `position` is the layer, `microbatch` counts its occurrences in the step.
  std::vector<ActivationRow> captured;
};

/// Thread-safe; steps are recorded in the order of the calls. Nothing that a caller passes ends the
/// program: errors are kUsage (what it passed, or a call after Close or in a child of fork) or
/// kFailed (disk, lock, permission), with what to do. No row is dropped: once the file cannot be
/// written, every call returns that error, and what was committed before stays readable.
class StepRecorder {
 public:
  /// Creates the record with a writer thread of its own (recorder/recorder.h). Other errors are
  /// RecordWriter::Create's. Environment keys must be unique.
  static Result<std::unique_ptr<StepRecorder>> Open(const std::filesystem::path& path,
                                                    const StepRun& run,
                                                    std::span<const StepLayer> layers,
                                                    std::span<const EnvironmentRow> environment,
                                                    const StepRecorderOptions& options = {});
  /// Without Close the run stays "running"; what was recorded is committed. In a child of fork
  /// nothing happens: the record is its parent's.
  virtual ~StepRecorder() = default;

  /// The steps' numbers ascend strictly. Waits where the disk is slower than the training. After
  /// kUsage the recorder goes on as if it had not been called.
  virtual Status Record(StepRow row) = 0;
  /// Writes the run's end, which is not kRunning, and closes the file, whatever it returns.
  virtual Status Close(RunStatus status, const std::string& detail) = 0;

  /// Steps that were taken so far.
  virtual std::int64_t recorded() const = 0;
};

}  // namespace verbatim
