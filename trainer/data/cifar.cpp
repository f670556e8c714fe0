#include "trainer/data/cifar.h"

#include <fmt/format.h>

#include <span>
#include <string>
#include <system_error>

#include "base/check.h"
#include "trainer/data/data_file.h"
#include "trainer/data/data_folder.h"

namespace verbatim {
namespace {

constexpr std::int64_t kChannels = 3;
constexpr std::int64_t kSide = 32;
constexpr std::size_t kImageBytes = kChannels * kSide * kSide;
constexpr int kCoarseClasses = 20;
constexpr char kFormatHint[] =
    "The binary version of the data set is expected, CIFAR-10 and CIFAR-100 not mixed up; unpack "
    "or download it again if the file is damaged.";
constexpr char kCifar10Hint[] =
    "Unpack cifar-10-binary.tar.gz and name the folder that then holds data_batch_1.bin … "
    "data_batch_5.bin and test_batch.bin (cifar-10-batches-bin).";
constexpr char kCifar100Hint[] =
    "Unpack cifar-100-binary.tar.gz and name the folder that then holds train.bin and test.bin "
    "(cifar-100-binary).";

Status CheckLabel(const DataFile& file, std::int64_t record, const char* kind, int label,
                  std::int64_t limit) {
  if (label < limit) return {};
  return BadInput(fmt::format("{}: {} {} of record {} is not below {}", file.path().string(), kind,
                              label, record, limit),
                  kFormatHint);
}

/// Reads one record's labels, and says whether there was one.
Result<bool> ReadLabel(DataFile& file, std::int64_t record, ImageSet& set) {
  const bool fine = set.classes == 100;
  std::uint8_t bytes[2] = {};
  const auto labels = std::span(bytes).first(fine ? 2 : 1);
  ASSIGN_OR_RETURN(const std::size_t count, file.Read(labels));
  if (count == 0) return false;
  if (count < labels.size()) {
    return BadInput(fmt::format("{}: the content ends inside the labels of record {}",
                                file.path().string(), record),
                    kFormatHint);
  }
  if (fine) RETURN_IF_ERROR(CheckLabel(file, record, "coarse label", bytes[0], kCoarseClasses));
  RETURN_IF_ERROR(CheckLabel(file, record, "label", labels.back(), set.classes));
  set.labels.push_back(labels.back());
  return true;
}

Status ReadPixels(DataFile& file, std::int64_t record, ImageSet& set) {
  const std::size_t start = set.pixels.size();
  if (start + kImageBytes > static_cast<std::size_t>(kMaxPixels)) {
    return BadInput(fmt::format("{}: more than {} pixels in all", file.path().string(), kMaxPixels),
                    kFormatHint);
  }
  set.pixels.resize(start + kImageBytes);
  return file.ReadExactly(std::span(set.pixels).subspan(start),
                          fmt::format("record {} takes {} label bytes and {} pixels", record,
                                      set.classes == 100 ? 2 : 1, kImageBytes));
}

Status AppendFile(const std::filesystem::path& path, ImageSet& set) {
  ASSIGN_OR_RETURN(DataFile file, DataFile::Open(path));
  for (std::int64_t record = 0;; ++record) {
    ASSIGN_OR_RETURN(const bool more, ReadLabel(file, record, set));
    if (!more && record == 0) {
      return BadInput(fmt::format("{}: the file is empty", path.string()), kFormatHint);
    }
    if (!more) return {};
    RETURN_IF_ERROR(ReadPixels(file, record, set));
  }
}

Result<ImageSet> ReadFromFolder(const DataFolder& folder, const std::vector<std::string>& names,
                                std::int64_t classes) {
  std::vector<std::filesystem::path> files;
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(files.emplace_back(), folder.Require({name}));
  }
  return ReadCifar(files, classes);
}

}  // namespace

Result<ImageSet> ReadCifar(const std::vector<std::filesystem::path>& files, std::int64_t classes) {
  VERBATIM_CHECK(classes == 10 || classes == 100, "classes = {}", classes);
  VERBATIM_CHECK(!files.empty());
  ImageSet set{.channels = kChannels, .height = kSide, .width = kSide, .classes = classes};
  for (const auto& file : files) RETURN_IF_ERROR(AppendFile(file, set));
  return set;
}

Result<DataSplits> LoadCifar10Folder(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const DataFolder folder, DataFolder::Open(path, kCifar10Hint));
  DataSplits splits;
  ASSIGN_OR_RETURN(splits.train,
                   ReadFromFolder(folder,
                                  {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                   "data_batch_4.bin", "data_batch_5.bin"},
                                  10));
  ASSIGN_OR_RETURN(splits.test, ReadFromFolder(folder, {"test_batch.bin"}, 10));
  return splits;
}

Result<DataSplits> LoadCifar100Folder(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const DataFolder folder, DataFolder::Open(path, kCifar100Hint));
  DataSplits splits;
  ASSIGN_OR_RETURN(splits.train, ReadFromFolder(folder, {"train.bin"}, 100));
  ASSIGN_OR_RETURN(splits.test, ReadFromFolder(folder, {"test.bin"}, 100));
  return splits;
}

}  // namespace verbatim
