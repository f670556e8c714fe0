#include "verify/trace.h"

#include "verify/trace_writer.h"

namespace verbatim {

Status WriteTrace(const RecordReader& reader, const std::string& record,
                  const std::function<Status(std::string_view)>& write) {
  ASSIGN_OR_RETURN(const RunInfo run, reader.Run());
  TraceWriter trace(write);
  RETURN_IF_ERROR(trace.Begin({record,
                               run.stages,
                               {{"record", record},
                                {"tool_version", run.tool_version},
                                {"policy", run.policy},
                                {"started_utc", run.started_utc}}}));
  Status written;
  RETURN_IF_ERROR(reader.ForEachSubnet({true, false, true}, [&](const SubnetRow& subnet) {
    written = trace.Add(subnet);
    return written.has_value();
  }));
  RETURN_IF_ERROR(written);
  return trace.End();
}

}  // namespace verbatim
