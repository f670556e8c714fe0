// The digest that identifies a data set in a record.
#pragma once

#include "base/digest.h"
#include "trainer/data/image_set.h"

namespace verbatim {

/// NamedTensorsDigest over "pixels" (uint8 [N, C, H, W]) and then "labels" (uint8 [N]). It covers
/// what a run can see of a set; file format, compression and file names leave it unchanged.
Digest DigestImages(const ImageSet& images);

/// The same over the training images and, where there is a test set, also its "test.pixels" and
/// "test.labels": what a record calls the data set's digest.
Digest DigestData(const DataSplits& data);

}  // namespace verbatim
