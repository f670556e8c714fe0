// What `verbatim show` writes into files instead of printing it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

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

/// A proof that subnet `seq` is in the record (store/proof.h), under the newest head in `heads`,
/// or without such files under a head of the record as it is. kUsage where the head has no such
/// subnet; kBadInput where the record does not bear it out.
Status ShowProof(const RecordReader& reader, const std::filesystem::path& record, std::int64_t seq,
                 const std::vector<std::filesystem::path>& heads, const OutputOption& output);

}  // namespace verbatim
