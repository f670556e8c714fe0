// Proves that IDX files are read to the byte and that every malformed one is refused with its name,
// what was found and what was expected.
#include "trainer/data/idx.h"

#include <gmock/gmock.h>

#include <vector>

#include "tests/trainer/data/data_testing.h"

namespace verbatim {
namespace {

using ::testing::ElementsAre;

/// Three images of 2 × 2 and their labels.
const std::string kImagesHeader =
    "\0\0\x08\x03"
    "\0\0\0\x03"
    "\0\0\0\x02"
    "\0\0\0\x02"s;
const std::string kImages = kImagesHeader + "\x00\x01\x02\x03\xfc\xfd\xfe\xff\x10\x11\x12\x13"s;
const std::string kLabelsHeader = "\0\0\x08\x01\0\0\0\x03"s;
const std::string kLabels = kLabelsHeader + "\x00\x02\x01"s;

class IdxTest : public DataTest {
 protected:
  Result<ImageSet> Read(std::string_view images, std::string_view labels,
                        std::optional<std::int64_t> classes = std::nullopt) {
    return ReadIdx(Write("images", images), Write("labels", labels), classes);
  }
};

TEST_F(IdxTest, ReadsPlainAndGzippedAlike) {
  for (const bool gzip_images : {false, true}) {
    for (const bool gzip_labels : {false, true}) {
      const auto set =
          Read(gzip_images ? Gzip(kImages) : kImages, gzip_labels ? Gzip(kLabels) : kLabels);
      ASSERT_TRUE(set.has_value()) << set.error().message;
      EXPECT_EQ(set->size(), 3);
      EXPECT_EQ(set->channels, 1);
      EXPECT_EQ(set->height, 2);
      EXPECT_EQ(set->width, 2);
      EXPECT_EQ(set->classes, 3);
      EXPECT_THAT(set->pixels, ElementsAre(0, 1, 2, 3, 252, 253, 254, 255, 16, 17, 18, 19));
      EXPECT_THAT(set->labels, ElementsAre(0, 2, 1));
    }
  }
}

TEST_F(IdxTest, HeightAndWidthAreNotSwapped) {
  const auto set = Read("\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x03"s + "abcdef",
                        "\0\0\x08\x01\0\0\0\x02\x00\x01"s);
  ASSERT_TRUE(set.has_value()) << set.error().message;
  EXPECT_EQ(set->height, 1);
  EXPECT_EQ(set->width, 3);
  EXPECT_EQ(set->image_size(), 3);
}

TEST_F(IdxTest, ClassesMayBeStated) {
  EXPECT_EQ(Read(kImages, kLabels, 10)->classes, 10);
  EXPECT_EQ(Read(kImages, kLabels, 3)->classes, 3);
  ExpectBadInput(Read(kImages, kLabels, 2), "label 2 (of image 1) is not below 2", "labels");
}

TEST_F(IdxTest, LabelsReachTo255) {
  const auto set = Read(kImages, kLabelsHeader + "\xff\x00\x01"s);
  ASSERT_TRUE(set.has_value());
  EXPECT_EQ(set->classes, 256);
}

TEST_F(IdxTest, ImagesCutAtEveryLengthAreRefused) {
  for (std::size_t length = 0; length < kImages.size(); ++length) {
    SCOPED_TRACE(length);
    const char* message = length == 0   ? "the file is empty; its IDX header takes 16 bytes"
                          : length < 16 ? "its IDX header takes 16 bytes"
                                        : "its header says 3 images of 2 × 2, 12 bytes";
    ExpectBadInput(Read(kImages.substr(0, length), kLabels), message, "images: ");
    ExpectBadInput(Read(Gzip(kImages.substr(0, length)), kLabels), message, "images: ");
  }
}

TEST_F(IdxTest, LabelsCutAtEveryLengthAreRefused) {
  for (std::size_t length = 0; length < kLabels.size(); ++length) {
    SCOPED_TRACE(length);
    const char* message =
        length < 8 ? "its IDX header takes 8 bytes" : "its header says 3 labels, 3 bytes";
    ExpectBadInput(Read(kImages, kLabels.substr(0, length)), message, "labels: ");
    ExpectBadInput(Read(kImages, Gzip(kLabels.substr(0, length))), message, "labels: ");
  }
}

TEST_F(IdxTest, GzipDamageIsRefused) {
  std::string bad_crc = Gzip(kImages);
  bad_crc[bad_crc.size() - 8] ^= 1;
  ExpectBadInput(Read(bad_crc, kLabels), "damaged gzip data", "images: ");
  ExpectBadInput(Read(Gzip(kImages).substr(0, 20), kLabels), "gzip data is cut short", "images: ");
  ExpectBadInput(Read(kImages, Gzip(kLabels) + "x"), "other bytes follow the gzip", "labels: ");
}

TEST_F(IdxTest, MalformedImagesAreRefused) {
  const std::string magic = "\0\0\x08\x03"s;
  const struct {
    const char* what;
    std::string bytes;
    const char* message;
  } cases[] = {
      {"labels", kLabels + kLabels, "magic number 0x00000801 found, 0x00000803 expected"},
      {"floats", "\0\0\x0d\x03"s + kImages.substr(4), "magic number 0x00000d03 found"},
      {"wrong byte order", "\x03\x08\0\0"s + kImages.substr(4), "magic number 0x03080000 found"},
      {"four dimensions", "\0\0\x08\x04"s + kImages.substr(4), "magic number 0x00000804 found"},
      {"trailing byte", kImages + "x", "goes on after byte 28; its header says 3 images of 2 × 2"},
      {"no image", magic + "\0\0\0\0\0\0\0\x02\0\0\0\x02"s, "0 images of 2 × 2; 1 to 2147483648"},
      {"no height", magic + "\0\0\0\x03\0\0\0\0\0\0\0\x02"s, "3 images of 0 × 2; 1 to"},
      {"no width", magic + "\0\0\0\x03\0\0\0\x02\0\0\0\0"s, "3 images of 2 × 0; 1 to"},
      {"one pixel too many", magic + "\x80\0\0\x01\0\0\0\x01\0\0\0\x01"s, "2147483649 images"},
      {"2^96", magic + "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"s, "4294967295 images of"},
      {"wraps to 0", magic + "\0\0\0\x04\x80\0\0\0\x80\0\0\0"s, "4 images of 2147483648"},
      {"wraps to 12", magic + "\x00\x00\x00\x0c\xff\xff\xff\xff\xff\xff\xff\xff"s, "12 images of"},
      {"2 GiB without content", magic + "\x80\0\0\0\0\0\0\x01\0\0\0\x01"s,
       "ends after 16 bytes; its header says 2147483648 images of 1 × 1, 2147483648 bytes"},
  };
  for (const auto& [what, bytes, message] : cases) {
    SCOPED_TRACE(what);
    ExpectBadInput(Read(bytes, kLabels), message, "images: ");
    ExpectBadInput(Read(Gzip(bytes), kLabels), message, "images: ");
  }
}

TEST_F(IdxTest, MalformedLabelsAreRefused) {
  const struct {
    const char* what;
    std::string bytes;
    const char* message;
  } cases[] = {
      {"images", kImages, "magic number 0x00000803 found, 0x00000801 expected"},
      {"trailing byte", kLabels + "x", "goes on after byte 11; its header says 3 labels, 3 bytes"},
      {"too few", "\0\0\x08\x01\0\0\0\x02\x00\x01"s, "its header says 2 labels, but "},
      {"too many", "\0\0\x08\x01\0\0\0\x04\x00\x01\x02\x03"s, "images holds 3 images"},
      {"absurdly many", "\0\0\x08\x01\xff\xff\xff\xff"s, "its header says 4294967295 labels"},
      {"one class", kLabelsHeader + "\0\0\0"s, "every label is 0; at least two classes"},
  };
  for (const auto& [what, bytes, message] : cases) {
    SCOPED_TRACE(what);
    ExpectBadInput(Read(kImages, bytes), message, "labels: ");
  }
}

TEST_F(IdxTest, FolderWithoutTestSet) {
  Write("train-images-idx3-ubyte", kImages);
  Write("train-labels-idx1-ubyte.gz", Gzip(kLabels));
  const auto splits = LoadIdxFolder(folder_);
  ASSERT_TRUE(splits.has_value()) << splits.error().message;
  EXPECT_EQ(splits->train.size(), 3);
  EXPECT_FALSE(splits->test.has_value());
}

TEST_F(IdxTest, FolderWithTestSetInEitherSpelling) {
  Write("train-images.idx3-ubyte", kImages);
  Write("train-labels.idx1-ubyte.gz", Gzip(kLabels));
  Write("t10k-images.idx3-ubyte.gz", Gzip(kImages));
  Write("t10k-labels-idx1-ubyte", kLabelsHeader + "\x00\x01\x01"s);
  const auto splits = LoadIdxFolder(folder_);
  ASSERT_TRUE(splits.has_value()) << splits.error().message;
  ASSERT_TRUE(splits->test.has_value());
  EXPECT_THAT(splits->train.labels, ElementsAre(0, 2, 1));
  EXPECT_THAT(splits->test->labels, ElementsAre(0, 1, 1));
  EXPECT_EQ(splits->test->classes, 3);  // training's, though the test set uses only two
}

TEST_F(IdxTest, MissingFilesAreNamedWithWhatToPutThere) {
  ExpectBadInput(LoadIdxFolder(folder_ / "nowhere"), "nowhere does not exist");
  ExpectBadInput(LoadIdxFolder(Write("file", "x")), "it is not a folder", "file");
  const auto no_images = LoadIdxFolder(folder_);
  ExpectBadInput(no_images,
                 "no file train-images-idx3-ubyte or train-images-idx3-ubyte.gz or "
                 "train-images.idx3-ubyte or train-images.idx3-ubyte.gz in the data folder",
                 folder_.string());
  EXPECT_NE(no_images.error().hint.find("train-labels-idx1-ubyte"), std::string::npos);
  std::filesystem::create_directory(folder_ / "train-images-idx3-ubyte");
  ExpectBadInput(LoadIdxFolder(folder_), "no file train-images-idx3-ubyte");
  Write("train-images-idx3-ubyte.gz", Gzip(kImages));
  ExpectBadInput(LoadIdxFolder(folder_), "no file train-labels-idx1-ubyte");
  Write("train-labels-idx1-ubyte", kLabels);
  Write("t10k-labels-idx1-ubyte", kLabels);
  ExpectBadInput(LoadIdxFolder(folder_), "no file t10k-images-idx3-ubyte");
  Write("t10k-images-idx3-ubyte", kImages);
  EXPECT_TRUE(LoadIdxFolder(folder_).has_value());
  std::filesystem::remove(folder_ / "t10k-labels-idx1-ubyte");
  ExpectBadInput(LoadIdxFolder(folder_), "no file t10k-labels-idx1-ubyte");
}

TEST_F(IdxTest, TestSetMustFitTheTrainingSet) {
  Write("train-images-idx3-ubyte", kImages);
  Write("train-labels-idx1-ubyte", kLabels);
  Write("t10k-images-idx3-ubyte", kImages);
  Write("t10k-labels-idx1-ubyte", kLabelsHeader + "\x00\x01\x03"s);
  ExpectBadInput(LoadIdxFolder(folder_), "label 3 (of image 2) is not below 3", "t10k-labels");
  Write("t10k-labels-idx1-ubyte", kLabels);
  Write("t10k-images-idx3-ubyte", "\0\0\x08\x03\0\0\0\x03\0\0\0\x01\0\0\0\x02"s + "abcdef");
  ExpectBadInput(LoadIdxFolder(folder_), "test images of 1 × 2 found, 2 × 2 expected",
                 "t10k-images");
}

}  // namespace
}  // namespace verbatim
