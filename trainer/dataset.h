// A run's data: raw images or text, the split, and batches as tensors (docs/spec.md, sections 2 and
// 5).
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "base/digest.h"
#include "base/status.h"
#include "supernet/search_space.h"
#include "supernet/spec.h"
#include "trainer/data/data_set.h"
#include "trainer/tensor_digest.h"

namespace verbatim {

/// Images: inputs n × C × H × W float32, labels n int64. Texts: inputs n × length int64, labels
/// n × (length - source) int64, the byte after each predicted place. On the device asked for.
struct Batch {
  at::Tensor inputs;
  at::Tensor labels;
};

/// Digest of a batch's bytes (docs/format.md, section 4); read later.
PendingNamedDigest TakeBatchDigest(const Batch& batch);
inline Digest BatchDigest(const Batch& batch) {
  return TakeBatchDigest(batch).Now();
}

/// Immutable after loading; any thread.
class Dataset {
 public:
  /// Errors are LoadDataSet's.
  static Result<std::unique_ptr<Dataset>> Load(const Spec& spec,
                                               const std::filesystem::path& folder);

  ActivationShape shape() const { return data_.shape(); }
  std::int64_t classes() const { return data_.classes(); }
  /// What a sample is predicted of: one label, or a text's byte after each of its target places.
  std::int64_t targets() const { return data_.text() ? data_.text()->targets() : 1; }
  /// Training samples in ascending order: indices into the training file.
  std::span<const std::uint32_t> training_pool() const { return data_.training; }
  std::int64_t held_out_size() const { return static_cast<std::int64_t>(data_.held_out.size()); }

  /// The samples of subnet `seq`, in batch order.
  std::vector<std::uint32_t> SamplesOf(std::int64_t seq) const;
  /// Calibration batch number `batch` of the evaluated subnet number `index`.
  std::vector<std::uint32_t> CalibrationSamples(std::int64_t index, std::int64_t batch) const;

  /// Batches: a device that computes behind its host is not waited for.
  Batch TrainingBatch(std::span<const std::uint32_t> samples, at::Device device) const;
  /// Held-out samples [first, last) in ascending order.
  Batch HeldOutBatch(std::int64_t first, std::int64_t last, at::Device device) const;

  /// Digest of the raw data, split apart from.
  Digest digest() const { return digest_; }

 private:
  Dataset(const Spec& spec, DataSet data);
  /// Of `images`, or of the text where there is one.
  Batch MakeBatch(const ImageSet* images, std::span<const std::uint32_t> samples,
                  at::Device device) const;
  Batch MakeImageBatch(const ImageSet& images, std::span<const std::uint32_t> samples,
                       bool is_pinned) const;

  std::uint64_t seed_;
  std::int64_t batch_size_;
  std::vector<std::array<float, 256>>
      input_value_;  ///< by channel and byte: normalised; images only
  DataSet data_;
  Digest digest_;
};

}  // namespace verbatim
