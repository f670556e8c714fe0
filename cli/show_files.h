// What `verbatim show` writes into files instead of printing it.
#pragma once

#include <filesystem>

#include "base/status.h"
#include "cli/output_file.h"
#include "store/reader.h"

namespace verbatim {

/// The record, examined, as a page with charts, to the file that `output` names.
Status ShowHtml(const RecordReader& reader, const std::filesystem::path& record,
                const OutputOption& output);

/// The record's activity as a trace (verify/trace.h), streamed into the file likewise.
Status ShowTrace(const RecordReader& reader, const std::filesystem::path& record,
                 const OutputOption& output);

}  // namespace verbatim
