// A record's activity as a trace (trace_writer.h).
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "store/reader.h"

namespace verbatim {

/// What TraceWriter makes of the run's subnets. Times are microseconds since the run's start.
///
/// Streams: `write` gets consecutive pieces of one JSON text, and memory does not grow with the
/// run. `record` is the path as typed. Errors are the reader's and those of `write`.
Status WriteTrace(const RecordReader& reader, const std::string& record,
                  const std::function<Status(std::string_view)>& write);

}  // namespace verbatim
