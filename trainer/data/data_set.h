// A spec's data in host memory: read, checked against the spec, and split. No LibTorch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/status.h"
#include "supernet/search_space.h"
#include "supernet/spec.h"
#include "trainer/data/image_set.h"

namespace verbatim {

struct DataSet {
  DataSplits images;
  std::vector<std::uint32_t> training;  ///< indices into images.train, ascending
  /// Indices into images.test, or into images.train where there is no test set; ascending.
  std::vector<std::uint32_t> held_out;

  /// Shape of one sample.
  ActivationShape shape() const {
    return {images.train.channels, images.train.height, images.train.width};
  }
  std::int64_t classes() const { return images.train.classes; }
};

/// Reads the files of `spec.data` in `folder` and splits them (docs/spec.md, section 2). BadInput
/// says which file is wrong and how, that the batch is larger than the training split, that nothing
/// is left to evaluate on, or that mean or std do not fit the channels.
Result<DataSet> LoadDataSet(const Spec& spec, const std::filesystem::path& folder);

/// Where the spec's data lies, relative to the folder of the spec.
std::filesystem::path DataFolderOf(const Spec& spec, const std::filesystem::path& spec_folder);

}  // namespace verbatim
