// A record's activity as a trace that Perfetto (ui.perfetto.dev) and Chrome's tracing page open.
// Source of the form: "Trace Event Format" of the Chromium project, JSON object format.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "store/reader.h"

namespace verbatim {

/// The trace: the run is a process, each stage a thread, each task a complete event ("forward 12")
/// with subnet, micro-batch and loss; a flow leads from the update that wrote a version to the
/// first forward that read it, once per writer, reader and their stages, where the version is one
/// of the layer's 64 newest. Times are microseconds since the run's start.
///
/// Streams: `write` gets consecutive pieces of one JSON text, and memory does not grow with the
/// run. `record` is the path as typed. Errors are the reader's and those of `write`.
Status WriteTrace(const RecordReader& reader, const std::string& record,
                  const std::function<Status(std::string_view)>& write);

}  // namespace verbatim
