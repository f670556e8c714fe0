#include "cli/spec_space.h"

#include <fmt/format.h>

#include <system_error>

#include "trainer/data/data_set.h"

namespace verbatim {

Result<SampleShape> ShapeOfData(const Spec& spec, const std::filesystem::path& spec_path,
                                const std::optional<std::filesystem::path>& data) {
  if (const auto text = ShapeOfSpec(spec.data)) return SampleShape{*text, kByteClasses};
  constexpr ActivationShape kCifar{3, 32, 32};
  if (spec.data.format == DataFormat::kCifar10) return SampleShape{kCifar, 10};
  if (spec.data.format == DataFormat::kCifar100) return SampleShape{kCifar, 100};
  const auto folder = data.value_or(DataFolderOf(spec, spec_path.parent_path()));
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error)) {
    return BadInput(fmt::format("{}: the shape of its images is in its data, and there is no "
                                "folder {}",
                                spec_path.string(), folder.string()),
                    "Name the folder of the data set with --data.");
  }
  ASSIGN_OR_RETURN(const DataSet set, LoadDataSet(spec, folder));
  return SampleShape{set.shape(), set.classes()};
}

}  // namespace verbatim
