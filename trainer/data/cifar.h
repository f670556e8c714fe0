// The binary version of CIFAR-10 and CIFAR-100.
//
// Source: Krizhevsky, "Learning multiple layers of features from tiny images", 2009, and the data
// set's page, "Binary version". A file is a sequence of records without header or count:
//   CIFAR-10   label (0 … 9), 3072 pixels
//   CIFAR-100  coarse label (0 … 19), fine label (0 … 99), 3072 pixels
// The pixels are 1024 red, 1024 green and 1024 blue values, each plane 32 × 32 row by row.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/status.h"
#include "trainer/data/image_set.h"

namespace verbatim {

/// Reads the records of `files` (at least one), in that order, into one set of [N, 3, 32, 32].
/// `classes` is 10 or 100 and selects the layout; CIFAR-100's coarse labels are checked and
/// dropped. kBadInput where a file cannot be read, is empty or ends inside a record, where a label
/// is out of range, or for more than kMaxPixels pixels. A file cut exactly between two records
/// looks whole: the format has no count.
Result<ImageSet> ReadCifar(const std::vector<std::filesystem::path>& files, std::int64_t classes);

/// Reads data_batch_1.bin … data_batch_5.bin as train and test_batch.bin as test; all must exist.
Result<DataSplits> LoadCifar10Folder(const std::filesystem::path& folder);

/// Reads train.bin and test.bin with their fine labels; both must exist.
Result<DataSplits> LoadCifar100Folder(const std::filesystem::path& folder);

}  // namespace verbatim
