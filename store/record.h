// The rows of a record as plain values (docs/format.md states their tables and columns).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/digest.h"
#include "base/hash256.h"
#include "store/step_facts.h"

namespace verbatim {

/// How a run ended, or that it has not.
enum class RunStatus {
  kRunning,      ///< never closed: it is still running, or was killed
  kComplete,     ///< every subnet of the spec was trained
  kInterrupted,  ///< stopped on request; what is recorded is a whole prefix of the stream
  kFailed,       ///< stopped by an error, told in `status_detail`
};

/// "running", "complete", "interrupted", "failed".
const char* ToString(RunStatus status);

/// Who trained. The record's version says it (store/format.h), no column.
enum class RunKind : std::uint8_t {
  kSupernet,  ///< this program: a subnet is one of a supernet
  kSteps,     ///< another trainer: a subnet is one of its steps and uses every layer
};

/// One per record: what was run, on what layout, and how it ended.
struct RunInfo {
  std::string tool_version;
  std::string spec_json;    ///< effective spec (SpecToJson), or StepSpecToJson of a step run
  std::string spec_folder;  ///< absolute; where the spec's relative paths start
  std::string command_line;
  std::string policy;        ///< "causal", "sequential", "gpipe", "1f1b", "asynchronous"; "steps"
  std::string record_level;  ///< "losses", "weights", "full"
  std::string device;        ///< "cpu", "cuda", "cuda:1"
  std::int64_t stages = 1;
  std::int64_t in_flight = 1;       ///< most subnets in flight
  std::string partition = "equal";  ///< "equal", "balanced", "6,6,5" (schedule/partition.h)
  std::int64_t subnets_planned = 0;
  Digest dataset_digest;    ///< of the raw data set (docs/format.md)
  std::string started_utc;  ///< ISO 8601, "2026-01-31T12:00:00Z"
  std::string ended_utc;    ///< empty while running
  RunStatus status = RunStatus::kRunning;
  std::string status_detail;  ///< for kFailed and kInterrupted: why, and at which subnet
  RunKind kind = RunKind::kSupernet;
};

/// One fact of the numeric environment, such as ("libtorch.version", "2.11.0+cu130").
struct EnvironmentRow {
  std::string key;
  std::string value;
  bool operator==(const EnvironmentRow&) const = default;
};

struct LayerRow {
  std::int32_t layer = 0;
  std::string name;
  std::int32_t position = 0;
  std::int32_t candidate = 0;
  std::string op;          ///< Describe(op)
  bool versioned = false;  ///< only versioned layers have accesses
  Digest initial_digest;   ///< weight digest before the first subnet
  bool operator==(const LayerRow&) const = default;
};

/// Subnet's use of one versioned layer.
struct AccessRow {
  std::int32_t layer = 0;
  /// Observed version: the seq whose update wrote what the forward pass read; -1: initial weights.
  std::int64_t read_seq = -1;
  /// Observed version that this subnet's own update was applied to. Equal to read_seq in every
  /// causal run where the layer has no delay.
  std::int64_t base_seq = -1;
  std::int32_t stage = 0;                 ///< not content: where it ran, at most kStageMax
  std::optional<Digest> weights;          ///< parameters and buffers after the update
  std::optional<Digest> optimizer_state;  ///< after the update
  std::optional<Digest> gradients;        ///< level `full`
  bool operator==(const AccessRow&) const = default;
};

enum class Phase : std::uint8_t { kForward = 0, kBackward = 1, kUpdate = 2 };

/// "forward", "backward", "update".
const char* ToString(Phase phase);

/// One task of a stage: when it worked on what. Nanoseconds since the run's start; not content.
struct ActivityRow {
  std::int32_t stage = 0;
  std::int32_t microbatch = 0;
  Phase phase = Phase::kForward;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  bool operator==(const ActivityRow&) const = default;
};

/// Level `full`: digest of one position's forward output for one micro-batch.
struct ActivationRow {
  std::int32_t microbatch = 0;
  std::int32_t position = 0;
  Digest digest;
  bool operator==(const ActivationRow&) const = default;
};

/// One continuation of a stopped run by `verbatim resume`. What is not here is as in RunInfo.
struct ResumptionRow {
  std::int64_t resumption = 1;  ///< 1, 2, …
  std::string tool_version;
  std::string command_line;
  std::string policy;
  std::string device;
  std::int64_t stages = 1;
  std::int64_t in_flight = 1;
  std::string partition;
  std::int64_t cut = 0;     ///< the first subnet that was executed: the checkpoint's cut, or 0
  std::string started_utc;  ///< ISO 8601
  std::string facts_json;   ///< its environment, where it differs from the run's: {"info.host":"b"}
  bool operator==(const ResumptionRow&) const = default;
};

/// One layer in a checkpoint.
struct CheckpointLayer {
  std::int64_t version = -1;  ///< seq of the subnet that wrote it; -1: initial weights
  Hash256 file;               ///< Blake2b of its file, which bears that name
  bool operator==(const CheckpointLayer&) const = default;
};

/// All layers as the subnets below `cut` left them, and no later one touched them.
struct CheckpointRow {
  std::int64_t cut = 0;
  std::string created_utc;              ///< ISO 8601
  std::vector<CheckpointLayer> layers;  ///< by layer id, every layer of the record
  bool operator==(const CheckpointRow&) const = default;
};

/// Hashes of one complete subtree of a record's two trees (store/merkle.h). Of level 0: the leaves
/// of one subnet.
struct TreeNode {
  Hash256 content;
  Hash256 layout;
  bool operator==(const TreeNode&) const = default;
};

/// What some rows hash to (store/seal.h).
struct SealRow {
  std::string part;  ///< "start", "circumstances", "end"
  Hash256 seal;
  bool operator==(const SealRow&) const = default;
};

/// A finished subnet with everything recorded of it.
struct SubnetRow {
  std::int64_t seq = 0;
  std::vector<std::uint16_t> choices;  ///< one per choice block
  std::vector<std::uint32_t> samples;  ///< indices into the training data, in batch order
  Digest batch_digest;                 ///< of "inputs" and "labels"
  std::uint32_t loss_bits = 0;         ///< the float32 loss, bit for bit (NaN survives)
  Hash256 content_leaf;                ///< of all content here (recorder/content_digest.h)
  Hash256 layout_leaf;                 ///< of stages and times (likewise)
  std::vector<AccessRow> accesses;     ///< ascending layer (thus position)
  std::vector<ActivationRow> activations;
  std::vector<ActivityRow> activities;
  std::optional<StepFacts> step;  ///< of a step run: always; else never
};

struct EvaluationRow {
  std::int64_t index = 0;
  std::vector<std::uint16_t> choices;
  std::int64_t correct = 0;
  std::int64_t total = 0;
  bool operator==(const EvaluationRow&) const = default;
};

}  // namespace verbatim
