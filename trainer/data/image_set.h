// Labelled images in host memory: what every reader in trainer/data returns.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace verbatim {

/// Most pixel values that one set may hold (2 GiB). A header that claims more is refused unread.
inline constexpr std::int64_t kMaxPixels = std::int64_t{1} << 31;
/// Labels are single bytes.
inline constexpr std::int64_t kMaxClasses = 256;

/// N labelled images of one shape. A reader's result holds N >= 1 images, every dimension >= 1,
/// every label below `classes`, 2 <= classes <= kMaxClasses and at most kMaxPixels pixels.
struct ImageSet {
  std::int64_t channels = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t classes = 0;
  /// [N, channels, height, width], row-major, the file's values unchanged.
  std::vector<std::uint8_t> pixels;
  /// [N]
  std::vector<std::uint8_t> labels;

  /// N, the number of images.
  std::int64_t size() const { return static_cast<std::int64_t>(labels.size()); }
  /// Bytes of one image.
  std::int64_t image_size() const { return channels * height * width; }
};

/// A data set as its folder divides it. `test`, where present, has train's shape and classes; it
/// is then the held-out set and `train` is used whole. Where absent, see SplitHeldOut.
struct DataSplits {
  ImageSet train;
  std::optional<ImageSet> test;
};

}  // namespace verbatim
