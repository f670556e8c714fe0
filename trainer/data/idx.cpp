#include "trainer/data/idx.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "trainer/data/data_file.h"
#include "trainer/data/data_folder.h"

namespace verbatim {
namespace {

constexpr std::uint32_t kImagesMagic = 0x00000803;
constexpr std::uint32_t kLabelsMagic = 0x00000801;
constexpr std::size_t kReadBytes = 1 << 20;
constexpr char kFormatHint[] =
    "IDX image files begin with the bytes 00 00 08 03, label files with 00 00 08 01; check that "
    "the two are not swapped and download the file again if it is damaged.";
constexpr char kFolderHint[] =
    "Put the data set's IDX files there: train-images-idx3-ubyte and train-labels-idx1-ubyte and, "
    "where it has a test set, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte; each may be "
    "gzipped (.gz).";

std::uint32_t BigEndian(std::span<const std::uint8_t, 4> bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 |
         std::uint32_t{bytes[2]} << 8 | std::uint32_t{bytes[3]};
}

/// The magic number and then the sizes of `kDimensions` dimensions.
template <std::size_t kDimensions>
Result<std::array<std::uint32_t, kDimensions>> ReadHeader(DataFile& file, std::uint32_t magic) {
  std::array<std::uint8_t, 4 + 4 * kDimensions> bytes{};
  RETURN_IF_ERROR(
      file.ReadExactly(bytes, fmt::format("its IDX header takes {} bytes", bytes.size())));
  const std::span<const std::uint8_t> view(bytes);
  if (const std::uint32_t found = BigEndian(view.first<4>()); found != magic) {
    return BadInput(fmt::format("{}: magic number {:#010x} found, {:#010x} expected",
                                file.path().string(), found, magic),
                    kFormatHint);
  }
  std::array<std::uint32_t, kDimensions> sizes{};
  for (std::size_t i = 0; i < kDimensions; ++i) {
    sizes[i] = BigEndian(view.subspan(4 + 4 * i).template first<4>());
  }
  return sizes;
}

/// Exactly `size` bytes and then the end. `shape` says where the size comes from.
Result<std::vector<std::uint8_t>> ReadPayload(DataFile& file, std::size_t size,
                                              std::string_view shape) {
  const std::string expected = fmt::format("its header says {}, {} bytes", shape, size);
  std::vector<std::uint8_t> bytes;
  // Piece by piece, so that a lying header costs no more memory than the file has content.
  while (bytes.size() < size) {
    const std::size_t start = bytes.size();
    bytes.resize(std::min(size, start + kReadBytes));
    RETURN_IF_ERROR(file.ReadExactly(std::span(bytes).subspan(start), expected));
  }
  RETURN_IF_ERROR(file.ExpectEnd(expected));
  return bytes;
}

/// Whether n·height·width is 1 … kMaxPixels; each factor is below 2^32, and so never overflows.
bool SizeIsPlausible(std::uint32_t n, std::uint32_t height, std::uint32_t width) {
  const auto limit = static_cast<std::uint64_t>(kMaxPixels);
  const std::uint64_t image = std::uint64_t{height} * width;
  return n >= 1 && image >= 1 && image <= limit && image * n <= limit;
}

Result<ImageSet> ReadImages(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(DataFile file, DataFile::Open(path));
  ASSIGN_OR_RETURN(const auto sizes, ReadHeader<3>(file, kImagesMagic));
  const auto [n, height, width] = sizes;
  const std::string shape = fmt::format("{} images of {} × {}", n, height, width);
  if (!SizeIsPlausible(n, height, width)) {
    return BadInput(fmt::format("{}: its header says {}; 1 to {} pixels in all are expected",
                                path.string(), shape, kMaxPixels),
                    kFormatHint);
  }
  ImageSet set{.channels = 1, .height = height, .width = width};
  ASSIGN_OR_RETURN(set.pixels, ReadPayload(file, std::size_t{n} * height * width, shape));
  return set;
}

Result<std::vector<std::uint8_t>> ReadLabels(const std::filesystem::path& path,
                                             std::size_t image_count,
                                             const std::filesystem::path& images) {
  ASSIGN_OR_RETURN(DataFile file, DataFile::Open(path));
  ASSIGN_OR_RETURN(const auto sizes, ReadHeader<1>(file, kLabelsMagic));
  if (sizes[0] != image_count) {
    return BadInput(fmt::format("{}: its header says {} labels, but {} holds {} images",
                                path.string(), sizes[0], images.string(), image_count),
                    "Both files must come from the same data set.");
  }
  return ReadPayload(file, image_count, fmt::format("{} labels", image_count));
}

Status CheckLabels(const std::vector<std::uint8_t>& labels, std::int64_t classes,
                   const std::filesystem::path& path) {
  const auto bad = std::find_if(labels.begin(), labels.end(),
                                [classes](std::uint8_t label) { return label >= classes; });
  if (bad == labels.end()) return {};
  return BadInput(fmt::format("{}: label {} (of image {}) is not below {}, the number of classes",
                              path.string(), *bad, bad - labels.begin(), classes),
                  "Labels count from 0, and a test set may only use the training set's classes.");
}

std::vector<std::string> Spellings(std::string_view stem, std::string_view type) {
  return {fmt::format("{}-{}", stem, type), fmt::format("{}-{}.gz", stem, type),
          fmt::format("{}.{}", stem, type), fmt::format("{}.{}.gz", stem, type)};
}

Result<ImageSet> ReadTest(const DataFolder& folder, const ImageSet& train) {
  ASSIGN_OR_RETURN(const auto images, folder.Require(Spellings("t10k-images", "idx3-ubyte")));
  ASSIGN_OR_RETURN(const auto labels, folder.Require(Spellings("t10k-labels", "idx1-ubyte")));
  ASSIGN_OR_RETURN(ImageSet test, ReadIdx(images, labels, train.classes));
  if (test.height != train.height || test.width != train.width) {
    return BadInput(
        fmt::format("{}: test images of {} × {} found, {} × {} expected as in training",
                    images.string(), test.height, test.width, train.height, train.width),
        "The test files must come from the same data set as the training files.");
  }
  return test;
}

}  // namespace

Result<ImageSet> ReadIdx(const std::filesystem::path& images, const std::filesystem::path& labels,
                         std::optional<std::int64_t> classes) {
  VERBATIM_CHECK(!classes || (*classes >= 2 && *classes <= kMaxClasses), "classes = {}", *classes);
  ASSIGN_OR_RETURN(ImageSet set, ReadImages(images));
  const std::size_t count = set.pixels.size() / static_cast<std::size_t>(set.image_size());
  ASSIGN_OR_RETURN(set.labels, ReadLabels(labels, count, images));
  set.classes = classes.value_or(*std::max_element(set.labels.begin(), set.labels.end()) + 1);
  if (set.classes < 2) {
    return BadInput(
        fmt::format("{}: every label is 0; at least two classes are expected", labels.string()),
        "Check that the file holds the labels of these images.");
  }
  RETURN_IF_ERROR(CheckLabels(set.labels, set.classes, labels));
  return set;
}

Result<DataSplits> LoadIdxFolder(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const DataFolder folder, DataFolder::Open(path, kFolderHint));
  ASSIGN_OR_RETURN(const auto images, folder.Require(Spellings("train-images", "idx3-ubyte")));
  ASSIGN_OR_RETURN(const auto labels, folder.Require(Spellings("train-labels", "idx1-ubyte")));
  DataSplits splits;
  ASSIGN_OR_RETURN(splits.train, ReadIdx(images, labels));
  if (folder.Find(Spellings("t10k-images", "idx3-ubyte")) ||
      folder.Find(Spellings("t10k-labels", "idx1-ubyte"))) {
    ASSIGN_OR_RETURN(splits.test, ReadTest(folder, splits.train));
  }
  return splits;
}

}  // namespace verbatim
