// Files that options name for results: checked before the work, and replaced only as a whole.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace verbatim {

/// An option that names a file to write, and what it was given.
struct OutputOption {
  std::string option;          ///< as errors name it: "--report"
  std::filesystem::path path;  ///< empty: not given
};

/// Takes consecutive pieces of a text.
using TextSink = std::function<Status(std::string_view)>;

/// What can be known before the work. Options not given are passed over. kUsage where two options
/// name one file, or where a file is one of `records` or a part of it, another SQLite database, or
/// a file that SQLite keeps beside one; kFailed where a file cannot be written.
Status CheckOutputs(const std::vector<OutputOption>& outputs,
                    const std::vector<std::filesystem::path>& records);

/// kUsage where an output is one of the files that the command reads. Empty paths are passed over.
Status RefuseInputs(const std::vector<OutputOption>& outputs,
                    const std::vector<std::filesystem::path>& inputs);

/// Writes what `produce` gives to its sink, with the same refusals. An existing file is replaced,
/// and only once all is written: until then the text is in a file beside it, which goes away where
/// anything fails. Symbolic links are followed. What is no regular file (a pipe, /dev/stdout), and
/// a file whose folder takes no other, is written itself. Errors are also those of `produce`.
Status WriteOutput(const OutputOption& output,
                   const std::function<Status(const TextSink&)>& produce);

/// Writes `text` likewise, or to stdout where the option is not given.
Status WriteResult(std::string_view text, const OutputOption& output);

/// Whether `path` is the record, one of the files that SQLite keeps beside it, or in the folder of
/// its checkpoints.
bool IsPartOfRecord(const std::filesystem::path& path, const std::filesystem::path& record);

}  // namespace verbatim
