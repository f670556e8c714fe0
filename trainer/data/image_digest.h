// The digest that identifies a data set in a record.
#pragma once

#include "base/digest.h"
#include "trainer/data/image_set.h"

namespace verbatim {

/// NamedTensorsDigest over "pixels" (uint8 [N, C, H, W]) and then "labels" (uint8 [N]). It covers
/// what a run can see of a set; file format, compression and file names leave it unchanged.
Digest DigestImages(const ImageSet& images);

}  // namespace verbatim
