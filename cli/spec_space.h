// A spec's search space where only the shape of its data is needed.
#pragma once

#include <filesystem>
#include <optional>

#include "base/status.h"
#include "supernet/search_space.h"
#include "supernet/spec.h"

namespace verbatim {

/// One sample's shape, and how many classes there are.
struct SampleShape {
  ActivationShape input;
  std::int64_t classes = 0;
};

/// Of a text from the spec, of CIFAR from its format; of other images from the data, in `data` or
/// where the spec says. kBadInput where that is not there.
Result<SampleShape> ShapeOfData(const Spec& spec, const std::filesystem::path& spec_path,
                                const std::optional<std::filesystem::path>& data);

}  // namespace verbatim
