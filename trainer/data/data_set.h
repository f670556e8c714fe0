// A spec's data in host memory: read, checked against the spec, and split. No LibTorch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <variant>
#include <vector>

#include "base/digest.h"
#include "base/status.h"
#include "supernet/search_space.h"
#include "supernet/spec.h"
#include "trainer/data/image_set.h"
#include "trainer/data/text.h"

namespace verbatim {

struct DataSet {
  std::variant<DataSplits, TextSet> content;
  std::vector<std::uint32_t> training;  ///< samples of the text or the training images, ascending
  /// Samples of the test images, or of what `training` are from where there are none; ascending.
  std::vector<std::uint32_t> held_out;

  /// Null where the data is the other kind.
  const DataSplits* images() const { return std::get_if<DataSplits>(&content); }
  const TextSet* text() const { return std::get_if<TextSet>(&content); }

  /// Shape of one sample.
  ActivationShape shape() const;
  std::int64_t classes() const;
  /// Of the raw data, split apart from: what a record calls the data set's digest.
  Digest digest() const;
};

/// Reads the files of `spec.data` in `folder` and splits them (docs/spec.md, section 2). BadInput
/// says which file is wrong and how, that the batch is larger than the training split, that nothing
/// is left to evaluate on, or that mean or std do not fit the channels.
Result<DataSet> LoadDataSet(const Spec& spec, const std::filesystem::path& folder);

/// Where the spec's data lies, relative to the folder of the spec.
std::filesystem::path DataFolderOf(const Spec& spec, const std::filesystem::path& spec_folder);

}  // namespace verbatim
