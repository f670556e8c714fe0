// The IDX format of the MNIST family of data sets.
//
// Source: LeCun, Cortes, Burges, "The MNIST database of handwritten digits", section "File
// formats". All integers are 32 bits, big-endian:
//   images  00 00 08 03, N, height, width, then N·height·width bytes, images row by row
//   labels  00 00 08 01, N, then N bytes
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "base/status.h"
#include "trainer/data/image_set.h"

namespace verbatim {

/// Reads one pair of files, each plain or gzipped (told apart by content, not by name); channels
/// is 1. Without `classes` their number is the largest label + 1. Every byte is accounted for:
/// kBadInput for a wrong magic number, a zero dimension, more than kMaxPixels pixels, content that
/// is shorter or longer than its header says, counts that differ, a label not below `classes`,
/// fewer than two classes. Memory grows with what was read, never with what a header claims.
/// `classes`, where given, is 2 … kMaxClasses.
Result<ImageSet> ReadIdx(const std::filesystem::path& images, const std::filesystem::path& labels,
                         std::optional<std::int64_t> classes = std::nullopt);

/// Reads train-images-idx3-ubyte and train-labels-idx1-ubyte and, where either of them exists,
/// t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte. Each may also be spelled with a dot before
/// "idx" and may end in .gz; of several spellings the first of X-idx, X-idx.gz, X.idx, X.idx.gz
/// is read. The number of classes is the largest training label + 1. Errors as for ReadIdx; also
/// where the test images' shape is not the training images'.
Result<DataSplits> LoadIdxFolder(const std::filesystem::path& folder);

}  // namespace verbatim
