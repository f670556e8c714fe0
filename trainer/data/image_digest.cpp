#include "trainer/data/image_digest.h"

#include <array>
#include <string>

#include "recorder/digest.h"

namespace verbatim {

namespace {

void AddImages(const ImageSet& images, const std::string& prefix, NamedTensorsDigest& digest) {
  const std::array pixels{images.size(), images.channels, images.height, images.width};
  const std::array labels{images.size()};
  digest.Add(prefix + "pixels", DigestTensor({DType::kUInt8, pixels, images.pixels.data()}));
  digest.Add(prefix + "labels", DigestTensor({DType::kUInt8, labels, images.labels.data()}));
}

}  // namespace

Digest DigestImages(const ImageSet& images) {
  NamedTensorsDigest digest;
  AddImages(images, "", digest);
  return digest.Finish();
}

Digest DigestData(const DataSplits& data) {
  NamedTensorsDigest digest;
  AddImages(data.train, "", digest);
  if (data.test) AddImages(*data.test, "test.", digest);
  return digest.Finish();
}

}  // namespace verbatim
