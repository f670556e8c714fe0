// What `verbatim show` writes into files instead of printing it.
#pragma once

#include <filesystem>

#include "base/status.h"
#include "store/reader.h"

namespace verbatim {

/// The record, examined, as a page with charts. An existing file is replaced. kUsage where `output`
/// is the record itself.
Status ShowHtml(const RecordReader& reader, const std::filesystem::path& record,
                const std::filesystem::path& output);

/// The record's activity as a trace (verify/trace.h). Likewise; streams into the file, of which a
/// part may be left where it fails.
Status ShowTrace(const RecordReader& reader, const std::filesystem::path& record,
                 const std::filesystem::path& output);

}  // namespace verbatim
