// Finding a data set's files in its folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace verbatim {

/// A data set's folder. `hint` tells people what to put there and goes with every error.
class DataFolder {
 public:
  /// kBadInput where `path` is not an existing folder.
  static Result<DataFolder> Open(const std::filesystem::path& path, std::string hint);

  /// The first of `names` that is a file in the folder; nothing where none is.
  std::optional<std::filesystem::path> Find(const std::vector<std::string>& names) const;
  /// Like Find; kBadInput, naming what was looked for, where none is there.
  Result<std::filesystem::path> Require(const std::vector<std::string>& names) const;

 private:
  DataFolder(std::filesystem::path path, std::string hint);

  std::filesystem::path path_;
  std::string hint_;
};

}  // namespace verbatim
