#include "trainer/data/data_set.h"

#include <fmt/format.h>

#include <numeric>

#include "trainer/data/cifar.h"
#include "trainer/data/idx.h"
#include "trainer/data/image_digest.h"
#include "trainer/data/split.h"

namespace verbatim {
namespace {

Result<std::variant<DataSplits, TextSet>> LoadFolder(const DataSpec& data,
                                                     const std::filesystem::path& folder) {
  switch (data.format) {
    case DataFormat::kIdx:
      return LoadIdxFolder(folder);
    case DataFormat::kCifar10:
      return LoadCifar10Folder(folder);
    case DataFormat::kCifar100:
      return LoadCifar100Folder(folder);
    case DataFormat::kText:
      return LoadText(folder, data.file, data.length, data.source);
  }
  return UsageError("unknown data format");
}

std::int64_t SamplesIn(const DataSet& data) {
  return data.images() ? data.images()->train.size() : data.text()->size();
}

std::vector<std::uint32_t> AllOf(const ImageSet& images) {
  std::vector<std::uint32_t> indices(static_cast<std::size_t>(images.size()));
  std::iota(indices.begin(), indices.end(), 0u);
  return indices;
}

void SplitSamples(const Spec& spec, DataSet& data) {
  if (const DataSplits* images = data.images(); images && images->test) {
    data.training = AllOf(images->train);
    data.held_out = AllOf(*images->test);
    return;
  }
  const auto size = static_cast<std::uint32_t>(SamplesIn(data));
  Split split = SplitHeldOut(size, spec.data.holdout, spec.seed);
  data.training = std::move(split.train);
  data.held_out = std::move(split.held_out);
}

Status CheckChannels(const std::vector<double>& values, const char* field, std::int64_t channels) {
  const auto count = static_cast<std::int64_t>(values.size());
  if (count == 1 || count == channels) return {};
  return BadInput(fmt::format("data.{}: {} values for images of {} channel{}", field, count,
                              channels, channels == 1 ? "" : "s"),
                  "give one value, or one per channel");
}

Status CheckFit(const Spec& spec, const std::filesystem::path& folder, const DataSet& data) {
  if (const DataSplits* images = data.images()) {
    RETURN_IF_ERROR(CheckChannels(spec.data.mean, "mean", images->train.channels));
    RETURN_IF_ERROR(CheckChannels(spec.data.std, "std", images->train.channels));
  }
  const auto available = static_cast<std::int64_t>(data.training.size());
  if (spec.training.batch > available) {
    return BadInput(fmt::format("training.batch: {} samples a batch, but the training split of {} "
                                "has {}",
                                spec.training.batch, folder.string(), available),
                    "use a smaller batch, or a smaller data.holdout");
  }
  if (spec.evaluation.subnets > 0 && data.held_out.empty()) {
    return BadInput("evaluation.subnets: there are no held-out samples to evaluate on",
                    "set data.holdout above 0, or evaluation.subnets to 0");
  }
  return {};
}

}  // namespace

ActivationShape DataSet::shape() const {
  if (text()) return {.channels = 1, .length = text()->length};
  const ImageSet& train = images()->train;
  return {.channels = train.channels, .height = train.height, .width = train.width};
}

std::int64_t DataSet::classes() const {
  return images() ? images()->train.classes : kByteClasses;
}

Digest DataSet::digest() const {
  return images() ? DigestData(*images()) : DigestText(*text());
}

Result<DataSet> LoadDataSet(const Spec& spec, const std::filesystem::path& folder) {
  DataSet data;
  ASSIGN_OR_RETURN(data.content, LoadFolder(spec.data, folder));
  SplitSamples(spec, data);
  RETURN_IF_ERROR(CheckFit(spec, folder, data));
  return data;
}

std::filesystem::path DataFolderOf(const Spec& spec, const std::filesystem::path& spec_folder) {
  return (spec_folder / spec.data.folder).lexically_normal();
}

}  // namespace verbatim
