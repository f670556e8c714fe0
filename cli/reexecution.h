// What `verify --reexecute` and `replay` have in common: planning, executing, comparing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/status.h"
#include "cli/commands.h"
#include "cli/layout_options.h"
#include "cli/rank_options.h"
#include "replay/plan.h"
#include "store/reader.h"
#include "supernet/spec.h"
#include "verify/verdict.h"

namespace verbatim {

struct ReexecutionRequest {
  std::filesystem::path record;  ///< as typed
  std::optional<std::filesystem::path> data;
  ReplaySelection selection;
  LayoutOptions layout{.in_flight = 1};
  std::string record_level;      ///< empty: the record's
  std::filesystem::path output;  ///< a record of the re-execution; empty: none
  bool force = false;            ///< overwrite `output`
  bool keep_going = false;
  bool any_environment = false;
  bool announce = false;  ///< say on stderr what will be executed
  RankOptions ranks;
  std::optional<RankPlace> place;  ///< of rank 0; absent: one process
};

/// ExamineRecord with a progress bar.
Verdict Examine(const RecordReader& reader, const std::string& record,
                const Invocation& invocation);

/// The spec's numeric profile, which must be set before the engine starts; nothing where the record
/// is too damaged to be re-executed.
std::optional<Numerics> RecordedNumerics(const RecordReader& reader);

/// On several ranks: they compute on devices of the kind that the run was made on. As SettleDevice.
Status SettleRecordedDevice(const RecordReader& reader, std::optional<RankPlace>& place);

/// A rank other than 0 of a command that works on a record: reads no more of it than the numeric
/// profile and the kind of device, and computes what rank 0 says. `part`: of a command that goes on
/// with the record.
Result<int> WorkOnRecord(std::optional<RankPlace> place, const std::string& command,
                         const std::filesystem::path& record,
                         const std::optional<std::filesystem::path>& data,
                         const std::optional<RankPartRequest>& part, const Invocation& invocation);

/// What all ranks of such a command have been asked for alike: RankPlace::task_json.
std::string DescribeRecordTask(const std::string& command);

/// Says in a damaged record's verdict why it was not executed.
void SayNotReexecuted(Verdict& verdict);

/// Executes what the request selects of a sound record and adds what was found to its verdict,
/// which ExamineRecord gave. invocation.engine must not be null.
Status ReexecuteAndCompare(const RecordReader& reader, const ReexecutionRequest& request,
                           const Invocation& invocation, Verdict& verdict);

/// Adds --data and --any-environment, which every command that re-executes has.
void AddReexecutionOptions(CLI::App& command, ReexecutionRequest& request);

}  // namespace verbatim
