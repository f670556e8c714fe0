#include "trainer/dataset.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "supernet/stream.h"

namespace verbatim {
namespace {

/// In memory of the host, pinned where it is to be copied from without a wait.
at::Tensor HostTensor(at::IntArrayRef sizes, at::ScalarType type, bool is_pinned) {
  return at::empty(sizes, at::TensorOptions().dtype(type).pinned_memory(is_pinned));
}

Batch MakeTextBatch(const TextSet& text, std::span<const std::uint32_t> samples, bool is_pinned) {
  const auto count = static_cast<std::int64_t>(samples.size());
  Batch batch{HostTensor({count, text.length}, at::kLong, is_pinned),
              HostTensor({count, text.targets()}, at::kLong, is_pinned)};
  auto* input = batch.inputs.mutable_data_ptr<std::int64_t>();
  auto* label = batch.labels.mutable_data_ptr<std::int64_t>();
  for (const std::uint32_t sample : samples) {
    input = std::ranges::copy(text.Inputs(sample), input).out;
    label = std::ranges::copy(text.Labels(sample), label).out;
  }
  return batch;
}

double PerChannel(const std::vector<double>& values, std::int64_t channel) {
  return values.size() == 1 ? values[0] : values[channel];
}

}  // namespace

Result<std::unique_ptr<Dataset>> Dataset::Load(const Spec& spec,
                                               const std::filesystem::path& folder) {
  ASSIGN_OR_RETURN(DataSet data, LoadDataSet(spec, folder));
  return std::unique_ptr<Dataset>(new Dataset(spec, std::move(data)));
}

Dataset::Dataset(const Spec& spec, DataSet data)
    : seed_(spec.seed),
      batch_size_(spec.training.batch),
      data_(std::move(data)),
      digest_(data_.digest()) {
  if (!data_.images()) return;
  for (std::int64_t channel = 0; channel < data_.images()->train.channels; ++channel) {
    const auto mean = static_cast<float>(PerChannel(spec.data.mean, channel));
    const auto std = static_cast<float>(PerChannel(spec.data.std, channel));
    auto& values = input_value_.emplace_back();
    for (int byte = 0; byte < 256; ++byte) values[byte] = (static_cast<float>(byte) - mean) / std;
  }
}

std::vector<std::uint32_t> Dataset::SamplesOf(std::int64_t seq) const {
  const RandomKey key{seed_, RandomPurpose::kBatch, 0, 0, static_cast<std::uint32_t>(seq)};
  return DrawSamples(data_.training, batch_size_, key);
}

std::vector<std::uint32_t> Dataset::CalibrationSamples(std::int64_t index,
                                                       std::int64_t batch) const {
  const RandomKey key{seed_, RandomPurpose::kCalibrationBatch, static_cast<std::uint32_t>(batch), 0,
                      static_cast<std::uint32_t>(index)};
  return DrawSamples(data_.training, batch_size_, key);
}

Batch Dataset::TrainingBatch(std::span<const std::uint32_t> samples, at::Device device) const {
  return MakeBatch(data_.images() ? &data_.images()->train : nullptr, samples, device);
}

Batch Dataset::HeldOutBatch(std::int64_t first, std::int64_t last, at::Device device) const {
  const auto samples = std::span(data_.held_out).subspan(first, last - first);
  const DataSplits* images = data_.images();
  if (!images) return MakeBatch(nullptr, samples, device);
  return MakeBatch(images->test ? &*images->test : &images->train, samples, device);
}

Batch Dataset::MakeBatch(const ImageSet* images, std::span<const std::uint32_t> samples,
                         at::Device device) const {
  const bool is_pinned = !device.is_cpu();
  const Batch batch = images ? MakeImageBatch(*images, samples, is_pinned)
                             : MakeTextBatch(*data_.text(), samples, is_pinned);
  return {batch.inputs.to(device, /*non_blocking=*/is_pinned),
          batch.labels.to(device, /*non_blocking=*/is_pinned)};
}

Batch Dataset::MakeImageBatch(const ImageSet& images, std::span<const std::uint32_t> samples,
                              bool is_pinned) const {
  const auto count = static_cast<std::int64_t>(samples.size());
  Batch batch{
      HostTensor({count, images.channels, images.height, images.width}, at::kFloat, is_pinned),
      HostTensor({count}, at::kLong, is_pinned)};
  float* input = batch.inputs.mutable_data_ptr<float>();
  auto* const labels = batch.labels.mutable_data_ptr<std::int64_t>();
  const std::int64_t plane = images.height * images.width;
  for (std::int64_t row = 0; row < count; ++row) {
    const std::uint8_t* pixel = images.pixels.data() + samples[row] * images.image_size();
    for (std::int64_t channel = 0; channel < images.channels; ++channel) {
      const auto& values = input_value_[channel];
      for (std::int64_t i = 0; i < plane; ++i) *input++ = values[*pixel++];
    }
    labels[row] = images.labels[samples[row]];
  }
  return batch;
}

PendingNamedDigest TakeBatchDigest(const Batch& batch) {
  PendingNamedDigest digest(2);
  digest.Take("inputs", batch.inputs);
  digest.Take("labels", batch.labels);
  return digest;
}

}  // namespace verbatim
