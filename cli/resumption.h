// `verbatim resume` as the engine does it: finds where to begin, trains on, compares what is
// recorded already, records the rest. Linked into verbatim-engine only.
#pragma once

#include <memory>

#include "base/status.h"
#include "cli/engine.h"
#include "store/reader.h"
#include "verify/verdict.h"

namespace verbatim {

/// As Engine::Resume. What LibTorch throws passes through.
Status ResumeAndRecord(std::unique_ptr<RecordReader> reader, const ResumeRequest& request,
                       Verdict& verdict);

}  // namespace verbatim
