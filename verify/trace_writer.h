// Writes a trace that Perfetto (ui.perfetto.dev) and Chrome's tracing page open, piece by piece.
// Source of the form: "Trace Event Format" of the Chromium project, JSON object format.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "store/record.h"

namespace verbatim {

struct TraceHead {
  std::string process;  ///< name of the one process
  std::int64_t stages = 0;
  std::vector<std::pair<std::string, std::string>> about;  ///< facts, in their order
};

/// The process is a run, each stage a thread, each task a complete event ("forward 12") with
/// subnet, micro-batch and, where there is one, loss; a flow leads from the update that wrote a
/// version to the first forward that read it, once per writer, reader and their stages, where the
/// version is one of the layer's 64 newest. Memory does not grow with the number of subnets. Errors
/// are those of `write`.
class TraceWriter {
 public:
  using Sink = std::function<Status(std::string_view)>;
  /// `write` gets consecutive pieces of one JSON text, and must outlive the writer.
  explicit TraceWriter(const Sink& write) : write_(write) {}

  /// Called once, first.
  Status Begin(const TraceHead& head);
  /// A subnet's activity and accesses; in ascending seq. Times are since the run's start.
  Status Add(const SubnetRow& subnet, bool has_loss = true);
  /// Called once, last.
  Status End();

 private:
  struct Version {
    std::int64_t seq = -1;
    std::int32_t stage = 0;
    std::int64_t updated_ns = 0;
  };
  using TimeByStage = std::map<std::int32_t, std::int64_t>;

  Status Put(const nlohmann::ordered_json& event);
  Status PutName(const char* what, std::int32_t stage, const std::string& name);
  Status PutTask(const SubnetRow& subnet, const ActivityRow& task, bool has_loss);
  Status PutFlow(const Version& from, std::int32_t stage, std::int64_t read_ns);
  Status PutFlows(const SubnetRow& subnet, const TimeByStage& first_forward_ns);
  void KeepVersions(const SubnetRow& subnet, const TimeByStage& updated_ns);

  const Sink& write_;
  bool is_first_ = true;
  std::int64_t flows_ = 0;
  std::map<std::int32_t, std::deque<Version>> versions_;  ///< by layer: the latest, oldest first
};

}  // namespace verbatim
