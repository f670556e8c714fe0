#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>

#include "cli/checkpoint_options.h"
#include "cli/commands.h"
#include "cli/data_option.h"
#include "cli/forward.h"
#include "cli/head_options.h"
#include "cli/layout_options.h"
#include "cli/output.h"
#include "cli/output_file.h"
#include "cli/rank_options.h"
#include "cli/reexecution.h"
#include "cli/step_runs.h"
#include "store/checkpoint_files.h"
#include "store/head.h"
#include "supernet/text_file.h"
#include "verify/examine.h"
#include "verify/head_check.h"
#include "verify/report.h"
#include "verify/text.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFooter =
    "Goes on with a run that was stopped, killed or failed, from its newest usable checkpoint and\n"
    "on any number of stages. Subnets after the checkpoint that are recorded already are executed\n"
    "again and compared; a record is added to, never rewritten. In the end it is equal in content\n"
    "to that of a run that nothing interrupted.\n"
    "\n"
    "Exit code 0: complete, or stopped by Ctrl-C; 1: a subnet that was executed again differs "
    "from\n"
    "what was recorded; 3: the record is damaged, or its data is missing; 4: the run failed "
    "again,\n"
    "or this machine's numeric environment is not the recorded one.\n"
    "\n"
    "Examples:\n"
    "  verbatim resume run.db\n"
    "  verbatim resume run.db --stages 8 --in-flight 6\n"
    "  verbatim resume run.db --data /mnt/cifar10";

/// Why there is nothing to go on with, or that there is.
Status CheckResumable(const RecordReader& reader, const Verdict& verdict) {
  const std::string path = ShellPath(verdict.record);
  // A damaged checkpoint is passed over when the start is chosen.
  const auto is_fatal = [](const Check& check) {
    return check.damage && check.name != kCheckCheckpoints;
  };
  const auto damage = std::find_if(verdict.checks.begin(), verdict.checks.end(), is_fatal);
  if (damage != verdict.checks.end()) {
    const std::string first = damage->problems.empty() ? damage->detail : damage->problems.front();
    return BadInput(
        fmt::format("{} is damaged, so nothing is added to it: {}", verdict.record, first),
        fmt::format("See all that was found: verbatim verify {}", path));
  }
  if (verdict.first_difference) {
    return UsageError(
        fmt::format("{} does not follow its spec or the causal order: a run that goes "
                    "on from it would prove nothing",
                    verdict.record),
        fmt::format("See what was found: verbatim verify {}", path));
  }
  ASSIGN_OR_RETURN(const auto environment, reader.Environment());
  for (const EnvironmentRow& row : environment) {
    if (row.key != "info.injected") continue;
    return UsageError(
        fmt::format("a fault was injected into {} on purpose ({})", verdict.record, row.value),
        "Train the spec again.");
  }
  return {};
}

/// What AppendHead will leave of them, where a machine stopped while it wrote one.
Result<std::vector<KeptHead>> ReadHeadsSoFar(const fs::path& file) {
  ASSIGN_OR_RETURN(const std::string text, ReadTextFile(file, "the file of heads", ""));
  std::vector<KeptHead> kept;
  const std::string whole = WholeHeads(text);
  if (whole.empty()) return kept;
  ASSIGN_OR_RETURN(const std::vector<Head> heads, ParseHeads(whole, file.string()));
  for (const Head& head : heads) kept.push_back({head, file.string()});
  return kept;
}

/// Heads of another history than the record's would go on as if they were of this one.
Status CheckKeptHeads(const RecordReader& reader, const ResumeRequest& request) {
  std::error_code error;
  const fs::path& file = request.heads.file;
  if (file.empty() || !fs::is_regular_file(file, error)) return {};
  ASSIGN_OR_RETURN(const auto kept, ReadHeadsSoFar(file));
  ASSIGN_OR_RETURN(const auto mismatches, CompareWithHeads(reader, kept, std::nullopt));
  if (mismatches.empty()) return {};
  return BadInput(fmt::format("{} is not the record that {} has heads of: {}",
                              request.record.string(), file.string(), mismatches.front().problem),
                  fmt::format("See what was found: verbatim verify {} --head {}",
                              ShellPath(request.record.string()), ShellPath(file.string())));
}

Status CheckRanks(ResumeRequest& request) {
  if (!request.place) return {};
  if (request.device) RETURN_IF_ERROR(SettleDevice(*request.device, *request.place));
  request.place->task_json = DescribeRecordTask("resume");
  return SettleStages(*request.place, request.layout);
}

Result<int> Resume(ResumeRequest& request, const Invocation& invocation) {
  RETURN_IF_ERROR(CheckDataFolder(request.data_folder));
  RETURN_IF_ERROR(CheckHeadOptions(request.heads, request.record, /*is_new_run=*/false));
  if (request.checkpoints.keep > 0) {
    RETURN_IF_ERROR(CheckCheckpointFolder(CheckpointFolder(request.record)));
  }
  ASSIGN_OR_RETURN(auto reader, RecordReader::Open(request.record));
  RETURN_IF_ERROR(RefuseStepRun(*reader, "resume"));
  RETURN_IF_ERROR(SettleRecordedDevice(*reader, request.place));
  const auto numerics = RecordedNumerics(*reader);
  if (numerics && NeedsForward(invocation, *numerics)) {
    return tl::unexpected(ForwardToEngine(invocation.argv, *numerics));
  }
  if (request.place) request.place->numerics = numerics.value_or(Numerics::kNative);
  Verdict verdict = Examine(*reader, request.record.string(), invocation);
  verdict.kind = VerdictKind::kReplay;
  RETURN_IF_ERROR(CheckResumable(*reader, verdict));
  RETURN_IF_ERROR(CheckKeptHeads(*reader, request));
  if (verdict.run.status == RunStatus::kComplete) {
    RETURN_IF_ERROR(
        WriteToStdout(fmt::format("{} is complete: {}\n", verdict.record,
                                  FormatCount(verdict.counts.subnets, "subnet", "subnets"))));
    return 0;
  }
  RETURN_IF_ERROR(invocation.engine->Resume(std::move(reader), request, verdict));
  if (!verdict.first_difference) return 0;
  RETURN_IF_ERROR(WriteToStdout(RenderText(verdict)));
  return verdict.exit_code();
}

Result<int> ResumeHere(ResumeRequest request, const Invocation& invocation) {
  ASSIGN_OR_RETURN(request.place, FindPlace(request.ranks));
  RETURN_IF_ERROR(CheckRanks(request));
  return OnRanks(request.place, invocation, [&] {
    if (!request.place || request.place->is_first()) return Resume(request, invocation);
    const RankPartRequest part{
        .record = request.record, .resumes = true, .keep = request.keep_parts};
    return WorkOnRecord(request.place, "resume", request.record, request.data_folder, part,
                        invocation);
  });
}

}  // namespace

void AddResumeCommand(CLI::App& app, Invocation& invocation) {
  auto request = std::make_shared<ResumeRequest>();
  CLI::App* command = app.add_subcommand("resume", "Goes on with a run that was stopped or killed");
  command->footer(kFooter);
  command->add_option("record", request->record, "The record to go on with. Example: run.db")
      ->required()
      ->type_name("RUN.db");
  AddLayoutOptions(*command, request->layout);
  command
      ->add_option("--device", request->device,
                   "cpu, cuda or cuda:N, of the recorded kind; the recorded kind if not given. "
                   "Example: --device cuda:1")
      ->type_name("DEVICE");
  AddRankOptions(*command, request->ranks);
  AddKeepPartsOption(*command, request->keep_parts);
  AddHeadOptions(*command, request->heads);
  AddCheckpointOptions(*command, request->checkpoints);
  AddDataOption(*command, request->data_folder);
  command->add_flag("--stop-on-nan,!--no-stop-on-nan", request->stop_on_nan,
                    "Stops the run at the first loss that is NaN or infinite (the default), or "
                    "goes on. Example: --no-stop-on-nan");
  command->add_flag("-q,--quiet", request->quiet,
                    "Shows neither progress nor summary. Example: --quiet");
  command->callback([request, &invocation] {
    request->command_line = invocation.command_line;
    invocation.action = [request, &invocation] { return ResumeHere(*request, invocation); };
  });
}

}  // namespace verbatim
