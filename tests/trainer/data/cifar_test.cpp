// Proves the CIFAR record layout (labels, then the planes R, G, B) and that damage is refused.
#include "trainer/data/cifar.h"

#include <gmock/gmock.h>

#include <vector>

#include "tests/trainer/data/data_testing.h"

namespace verbatim {
namespace {

using ::testing::ElementsAre;
using CifarTest = DataTest;

/// Planes of constant red, green and blue but for one marked pixel: green, row 2, column 5.
std::string Pixels(char red, char green, char blue, char mark) {
  std::string pixels = std::string(1024, red) + std::string(1024, green) + std::string(1024, blue);
  pixels[1024 + 2 * 32 + 5] = mark;
  return pixels;
}

std::uint8_t At(const ImageSet& set, int n, int channel, int row, int column) {
  return set.pixels[static_cast<std::size_t>(((n * 3 + channel) * 32 + row) * 32 + column)];
}

void ExpectImage(const ImageSet& set, int n, std::vector<int> expected) {
  EXPECT_EQ(At(set, n, 0, 0, 0), expected[0]);
  EXPECT_EQ(At(set, n, 0, 31, 31), expected[0]);
  EXPECT_EQ(At(set, n, 1, 0, 0), expected[1]);
  EXPECT_EQ(At(set, n, 1, 5, 2), expected[1]);
  EXPECT_EQ(At(set, n, 1, 2, 5), expected[3]);
  EXPECT_EQ(At(set, n, 2, 0, 0), expected[2]);
  EXPECT_EQ(At(set, n, 2, 31, 31), expected[2]);
}

TEST_F(CifarTest, Cifar10RecordIsLabelRedGreenBlue) {
  const auto first = Write("1.bin", "\x09" + Pixels(1, 2, 3, 4) + "\0"s + Pixels(5, 6, 7, 8));
  const auto second = Write("2.bin.gz", Gzip("\x03" + Pixels(9, 10, 11, 12)));
  const auto set = ReadCifar({first, second}, 10);
  ASSERT_TRUE(set.has_value()) << set.error().message;
  EXPECT_EQ(set->size(), 3);
  EXPECT_EQ(set->channels, 3);
  EXPECT_EQ(set->height, 32);
  EXPECT_EQ(set->width, 32);
  EXPECT_EQ(set->classes, 10);
  EXPECT_EQ(set->pixels.size(), 3u * 3072);
  EXPECT_THAT(set->labels, ElementsAre(9, 0, 3));
  ExpectImage(*set, 0, {1, 2, 3, 4});
  ExpectImage(*set, 1, {5, 6, 7, 8});
  ExpectImage(*set, 2, {9, 10, 11, 12});
}

TEST_F(CifarTest, Cifar100RecordIsCoarseFineRedGreenBlue) {
  const auto file =
      Write("train.bin", "\x13\x63" + Pixels(1, 2, 3, 4) + "\x07\0"s + Pixels(5, 6, 7, 8));
  const auto set = ReadCifar({file}, 100);
  ASSERT_TRUE(set.has_value()) << set.error().message;
  EXPECT_EQ(set->classes, 100);
  EXPECT_THAT(set->labels, ElementsAre(99, 0));
  ExpectImage(*set, 0, {1, 2, 3, 4});
  ExpectImage(*set, 1, {5, 6, 7, 8});
}

TEST_F(CifarTest, FileCutInsideARecordIsRefused) {
  const std::string record = "\x01\x02" + Pixels(1, 2, 3, 4);
  const std::string two = record + record;
  for (const std::size_t length : {0, 1, 2, 3, 1026, 3072, 3073, 3075, 3076, 3077, 5000, 6147}) {
    SCOPED_TRACE(length);
    const std::size_t in_record = length % record.size();
    const char* message = length == 0      ? "the file is empty"
                          : in_record == 1 ? "the content ends inside the labels of record"
                                           : "takes 2 label bytes and 3072 pixels";
    ExpectBadInput(ReadCifar({Write("train.bin", two.substr(0, length))}, 100), message,
                   "train.bin: ");
  }
}

TEST_F(CifarTest, DamageIsNamed) {
  const std::string pixels = Pixels(1, 2, 3, 4);
  const struct {
    std::int64_t classes;
    std::string bytes;
    const char* message;
  } cases[] = {
      {10, "", "the file is empty"},
      {10, "\x01" + pixels + "\x0a" + pixels, "label 10 of record 1 is not below 10"},
      {10, "\x01" + pixels + "\x01", "ends after 3074 bytes; record 1 takes 1 label bytes and"},
      {100, "\x14\x01" + pixels, "coarse label 20 of record 0 is not below 20"},
      {100, "\x01\x64" + pixels, "label 100 of record 0 is not below 100"},
      {10, Gzip("\x01" + pixels).substr(0, 30), "the gzip data is cut short"},
  };
  for (const auto& [classes, bytes, message] : cases) {
    SCOPED_TRACE(message);
    ExpectBadInput(ReadCifar({Write("bad.bin", bytes)}, classes), message, "bad.bin: ");
  }
  ExpectBadInput(ReadCifar({folder_ / "none.bin"}, 10), "cannot open", "none.bin");
}

TEST_F(CifarTest, Cifar10FolderReadsItsBatchesInOrder) {
  for (int i = 1; i <= 5; ++i) {
    ExpectBadInput(LoadCifar10Folder(folder_), "no file data_batch_" + std::to_string(i) + ".bin");
    Write("data_batch_" + std::to_string(i) + ".bin",
          static_cast<char>(i) + Pixels(static_cast<char>(10 * i), 0, 0, 0));
  }
  ExpectBadInput(LoadCifar10Folder(folder_), "no file test_batch.bin");
  Write("test_batch.bin", "\x09" + Pixels(90, 0, 0, 0));
  const auto splits = LoadCifar10Folder(folder_);
  ASSERT_TRUE(splits.has_value()) << splits.error().message;
  EXPECT_THAT(splits->train.labels, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(At(splits->train, 3, 0, 0, 0), 40);
  EXPECT_THAT(splits->test.value().labels, ElementsAre(9));
}

TEST_F(CifarTest, Cifar100Folder) {
  ExpectBadInput(LoadCifar100Folder(folder_), "no file train.bin in the data folder");
  Write("train.bin", "\x01\x32" + Pixels(1, 2, 3, 4));
  ExpectBadInput(LoadCifar100Folder(folder_), "no file test.bin in the data folder");
  Write("test.bin", "\x02\x33" + Pixels(5, 6, 7, 8));
  const auto splits = LoadCifar100Folder(folder_);
  ASSERT_TRUE(splits.has_value()) << splits.error().message;
  EXPECT_THAT(splits->train.labels, ElementsAre(50));
  EXPECT_THAT(splits->test.value().labels, ElementsAre(51));
  ExpectBadInput(LoadCifar100Folder(folder_ / "no"), "does not exist");
}

}  // namespace
}  // namespace verbatim
