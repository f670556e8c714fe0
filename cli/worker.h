// What a rank other than 0 does: joins, computes its stages as rank 0 says, and leaves. It writes
// nothing to stdout, and no file but its own part of a run that is recorded. Linked into
// verbatim-engine only.
#pragma once

#include "base/status.h"
#include "cli/engine.h"
#include "cli/rank_session.h"

namespace verbatim {

/// As Engine::Work. What LibTorch throws passes through.
Status WorkForRankZero(const WorkRequest& request, RankSession& session);

}  // namespace verbatim
