// The spec: everything that decides a run's bits, and nothing that does not (docs/spec.md).
//
// Stage counts, devices, threads and schedules are no part of it: they belong to a run's layout.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace verbatim {

/// The bits that libraries may choose by machine (docs/spec.md, "Numeric profiles").
enum class Numerics { kNative, kX8664V3, kX8664 };

enum class DataFormat { kIdx, kCifar10, kCifar100, kText };

struct DataSpec {
  DataFormat format = DataFormat::kIdx;
  std::string folder;                ///< as written; relative to the spec file's folder
  double holdout = 0.2;              ///< share held out where the data has no test files
  std::vector<double> mean = {0.0};  ///< images: one, or one per channel, in raw byte units
  std::vector<double> std = {255.0};
  std::string file;         ///< kText: its name in `folder`
  std::int64_t length = 0;  ///< kText: bytes of a sample's input
  std::int64_t source = 0;  ///< kText: how many of them are the encoder's, 0 <= source < length
};

enum class OperatorKind {
  kConv,
  kSeparableConv,
  kMbConv,
  kAvgPool,
  kMaxPool,
  kSkip,
  kLinear,
  kFfn,
  kClassifier,
  kEmbedding,
  kConv1d,
  kSeparableConv1d,
  kLightweightConv,
  kAttention,
  kCrossAttention,
  kGlu,
};

enum class Activation { kNone, kRelu, kSwish, kLeakyRelu };

/// Which places of a sequence a block works on: the first `data.source`, or the others.
enum class SequencePart { kEncoder, kDecoder };

/// One operator's own settings. Fields that its kind does not have keep their defaults.
struct OperatorSpec {
  OperatorKind kind = OperatorKind::kSkip;
  std::int64_t kernel = 3;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
  std::int64_t expansion = 6;
  std::int64_t hidden = 0;
  std::int64_t heads = 4;
  double dropout = 0.0;
  Activation activation = Activation::kRelu;
  bool tied = false;  ///< kClassifier: its matrix is the stem's embedding

  bool operator==(const OperatorSpec&) const = default;
};

/// One choice block as written. `channels` and `features` 0 mean "as the input".
struct BlockSpec {
  std::int64_t repeat = 1;
  std::int64_t channels = 0;  ///< output channels of an image block
  std::int64_t features = 0;  ///< output features of a vector block, or of each place of a sequence
  std::int64_t stride = 1;    ///< of the first of the repeated blocks
  bool residual = false;
  bool trainable = true;
  std::int64_t delay = 0;  ///< its layers are read as all subnets below seq - delay left them
  SequencePart part = SequencePart::kDecoder;  ///< for sequences
  std::vector<OperatorSpec> candidates;

  bool operator==(const BlockSpec&) const = default;
};

struct SupernetSpec {
  BlockSpec stem;  ///< exactly one candidate
  std::vector<BlockSpec> blocks;
  BlockSpec head;  ///< exactly one candidate, a classifier
};

enum class SamplerKind { kUniform, kList, kFair, kReorder };

/// Fields that its kind does not have keep their defaults.
struct SamplerSpec {
  SamplerKind kind = SamplerKind::kUniform;
  std::string file;  ///< kList: as written; relative to the spec file's folder
  /// kFair: a candidate's uses are at least so many subnets apart, in blocks with that many
  /// candidates. Absent: half of each block's candidates.
  std::optional<std::int64_t> reuse_distance;
  std::vector<SamplerSpec> of;   ///< kReorder: one of another kind
  std::int64_t window = 128;     ///< kReorder: draws to choose from
  std::int64_t neighbours = 16;  ///< kReorder: subnets before, with which little is shared

  /// The file of kList, also within kReorder; else empty.
  const std::string& ListFile() const { return of.empty() ? file : of[0].file; }
};

enum class OptimizerKind { kSgd, kAdam, kAdamW };

struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::kSgd;
  double momentum = 0.0;
  bool nesterov = false;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
};

enum class LrKind { kConstant, kStep, kCosine };

/// The learning rate as a function of seq (docs/spec.md, "Learning rate").
struct LrSpec {
  LrKind kind = LrKind::kConstant;
  double base = 0.0;
  std::int64_t warmup = 0;  ///< subnets
  std::int64_t every = 0;   ///< kStep: subnets
  double gamma = 0.1;       ///< kStep
  double final = 0.0;       ///< kCosine
};

struct TrainingSpec {
  std::int64_t subnets = 0;
  std::int64_t batch = 0;
  std::int64_t microbatches = 1;
  double label_smoothing = 0.0;  ///< share of a target's weight that goes to all classes alike
  OptimizerSpec optimizer;
  LrSpec lr;
};

struct EvaluationSpec {
  std::int64_t subnets = 0;
  std::int64_t calibration_batches = 4;
};

/// What is recorded of every subnet (docs/format.md, "Levels").
enum class RecordLevel { kLosses, kWeights, kFull };

struct Spec {
  std::string name;
  std::uint64_t seed = 0;
  Numerics numerics = Numerics::kNative;
  DataSpec data;
  SupernetSpec supernet;
  SamplerSpec sampler;
  TrainingSpec training;
  EvaluationSpec evaluation;
  RecordLevel record_level = RecordLevel::kWeights;
};

/// Parses and validates everything that needs no data. `source` names the text in messages
/// ("digits.json"); an error says source, line, column and field, and suggests the field meant.
Result<Spec> ParseSpec(std::string_view text, const std::string& source);

/// Reads a file and parses it. BadInput where it cannot be read.
Result<Spec> ReadSpec(const std::filesystem::path& path);

/// The effective spec as JSON: every default filled in, keys sorted, no white space, numbers in
/// their shortest form that reads back as the same float64 (std::to_chars). Equal specs have equal
/// text; ParseSpec of it gives the spec back. Takes a spec that ParseSpec gave.
std::string SpecToJson(const Spec& spec);

/// The learning rate at `seq`, 0 <= seq < training.subnets.
double LearningRate(const TrainingSpec& training, std::int64_t seq);

const char* ToString(Numerics numerics);
const char* ToString(DataFormat format);
const char* ToString(RecordLevel level);
Result<RecordLevel> RecordLevelFromString(std::string_view text);

}  // namespace verbatim
