// A verdict as one HTML page that needs nothing else: no network, no other file.
#pragma once

#include <string>

#include "store/reader.h"
#include "verify/verdict.h"

namespace verbatim {

/// The page: verdict first and in plain text, then what was compared, and charts of the losses, the
/// stages, the comparison and the causal neighbourhood of the first difference (of the last subnet
/// where there is none). At most 3 MB, whatever the length of the run; reads the record once,
/// streaming. `record` is the verdict's, `reference` the record compared with, or null.
std::string RenderHtml(const Verdict& verdict, const RecordReader& record,
                       const RecordReader* reference, const std::string& tool_version);

}  // namespace verbatim
