#include "trainer/dataset.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <numeric>

#include "recorder/digest.h"
#include "supernet/stream.h"
#include "trainer/data/cifar.h"
#include "trainer/data/idx.h"
#include "trainer/data/image_digest.h"
#include "trainer/data/split.h"
#include "trainer/tensor_digest.h"

namespace verbatim {
namespace {

Result<DataSplits> LoadFolder(DataFormat format, const std::filesystem::path& folder) {
  switch (format) {
    case DataFormat::kIdx:
      return LoadIdxFolder(folder);
    case DataFormat::kCifar10:
      return LoadCifar10Folder(folder);
    case DataFormat::kCifar100:
      return LoadCifar100Folder(folder);
  }
  return UsageError("unknown data format");
}

double PerChannel(const std::vector<double>& values, std::int64_t channel) {
  return values.size() == 1 ? values[0] : values[channel];
}

Status CheckChannels(const std::vector<double>& values, const char* field, std::int64_t channels) {
  const auto count = static_cast<std::int64_t>(values.size());
  if (count == 1 || count == channels) return {};
  return BadInput(fmt::format("data.{}: {} values for images of {} channel{}", field, count,
                              channels, channels == 1 ? "" : "s"),
                  "give one value, or one per channel");
}

}  // namespace

std::filesystem::path DataFolderOf(const Spec& spec, const std::filesystem::path& spec_folder) {
  return (spec_folder / spec.data.folder).lexically_normal();
}

Result<std::unique_ptr<Dataset>> Dataset::Load(const Spec& spec,
                                               const std::filesystem::path& folder) {
  ASSIGN_OR_RETURN(DataSplits data, LoadFolder(spec.data.format, folder));
  RETURN_IF_ERROR(CheckChannels(spec.data.mean, "mean", data.train.channels));
  RETURN_IF_ERROR(CheckChannels(spec.data.std, "std", data.train.channels));
  std::unique_ptr<Dataset> dataset(new Dataset(spec, std::move(data)));
  const auto available = static_cast<std::int64_t>(dataset->training_pool_.size());
  if (spec.training.batch > available) {
    return BadInput(fmt::format("training.batch: {} samples a batch, but the training split of {} "
                                "has {}",
                                spec.training.batch, folder.string(), available),
                    "use a smaller batch, or a smaller data.holdout");
  }
  if (spec.evaluation.subnets > 0 && dataset->held_out_.empty()) {
    return BadInput("evaluation.subnets: there are no held-out samples to evaluate on",
                    "set data.holdout above 0, or evaluation.subnets to 0");
  }
  return dataset;
}

Dataset::Dataset(const Spec& spec, DataSplits data)
    : seed_(spec.seed), batch_size_(spec.training.batch), data_(std::move(data)) {
  for (std::int64_t channel = 0; channel < data_.train.channels; ++channel) {
    const auto mean = static_cast<float>(PerChannel(spec.data.mean, channel));
    const auto std = static_cast<float>(PerChannel(spec.data.std, channel));
    auto& values = input_value_.emplace_back();
    for (int byte = 0; byte < 256; ++byte) values[byte] = (static_cast<float>(byte) - mean) / std;
  }
  const auto size = static_cast<std::uint32_t>(data_.train.size());
  if (data_.test) {
    training_pool_.resize(size);
    std::iota(training_pool_.begin(), training_pool_.end(), 0u);
    held_out_.resize(data_.test->size());
    std::iota(held_out_.begin(), held_out_.end(), 0u);
  } else {
    Split split = SplitHeldOut(size, spec.data.holdout, spec.seed);
    training_pool_ = std::move(split.train);
    held_out_ = std::move(split.held_out);
  }
  digest_ = DigestData(data_);
}

ActivationShape Dataset::shape() const {
  return {data_.train.channels, data_.train.height, data_.train.width};
}

std::vector<std::uint32_t> Dataset::SamplesOf(std::int64_t seq) const {
  const RandomKey key{seed_, RandomPurpose::kBatch, 0, 0, static_cast<std::uint32_t>(seq)};
  return DrawSamples(training_pool_, batch_size_, key);
}

std::vector<std::uint32_t> Dataset::CalibrationSamples(std::int64_t index,
                                                       std::int64_t batch) const {
  const RandomKey key{seed_, RandomPurpose::kCalibrationBatch, static_cast<std::uint32_t>(batch), 0,
                      static_cast<std::uint32_t>(index)};
  return DrawSamples(training_pool_, batch_size_, key);
}

Batch Dataset::TrainingBatch(std::span<const std::uint32_t> samples, at::Device device) const {
  return MakeBatch(data_.train, samples, device);
}

Batch Dataset::HeldOutBatch(std::int64_t first, std::int64_t last, at::Device device) const {
  return MakeBatch(data_.test ? *data_.test : data_.train,
                   std::span(held_out_).subspan(first, last - first), device);
}

Batch Dataset::MakeBatch(const ImageSet& images, std::span<const std::uint32_t> samples,
                         at::Device device) const {
  const auto count = static_cast<std::int64_t>(samples.size());
  Batch batch{at::empty({count, images.channels, images.height, images.width}, at::kFloat),
              at::empty({count}, at::kLong)};
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
  return {batch.inputs.to(device), batch.labels.to(device)};
}

Digest BatchDigest(const Batch& batch) {
  NamedTensorsDigest digest;
  digest.Add("inputs", TensorDigest(batch.inputs));
  digest.Add("labels", TensorDigest(batch.labels));
  return digest.Finish();
}

}  // namespace verbatim
