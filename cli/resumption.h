// `verbatim resume` as the engine does it: finds where to begin, trains on, compares what is
// recorded already, records the rest. Linked into verbatim-engine only.
#pragma once

#include <memory>

#include "base/status.h"
#include "cli/engine.h"
#include "cli/rank_session.h"
#include "store/reader.h"
#include "verify/verdict.h"

namespace verbatim {

/// As Engine::Resume. Joins the other ranks where there are any; the caller lets the session leave
/// them. What LibTorch throws passes through.
Status ResumeAndRecord(std::unique_ptr<RecordReader> reader, const ResumeRequest& request,
                       RankSession& session, Verdict& verdict);

}  // namespace verbatim
