#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/data_option.h"
#include "cli/explaining.h"
#include "cli/forward.h"
#include "cli/layout_options.h"
#include "cli/output_file.h"
#include "cli/rank_options.h"
#include "cli/reexecution.h"
#include "cli/render_verdict.h"
#include "cli/step_runs.h"
#include "store/record_file.h"
#include "supernet/spec_limits.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

struct ReplayOptions {
  ReexecutionRequest request;
  std::optional<std::string> layer;
  std::optional<std::int64_t> at;
  bool explain = false;
  std::string format = "text";
  fs::path report;
  std::vector<std::string> also;
};

constexpr const char* kFooter =
    "Executes a recorded run again, on as many stages as you like, and compares every batch,\n"
    "loss, layer and optimizer state with the record as it goes. It stops at the first difference\n"
    "in causal order. --subnet and --layer execute only what one subnet depends on, its causal\n"
    "cone, and say beforehand how much that is.\n"
    "\n"
    "Exit code 0: equal; 1: a difference; 3: the record is damaged, or its data is missing; 4:\n"
    "this machine cannot decide, such as in another numeric environment.\n"
    "\n"
    "Examples:\n"
    "  verbatim replay run.db\n"
    "  verbatim replay run.db --stages 8 --in-flight 6\n"
    "  verbatim replay run.db --subnet 120\n"
    "  verbatim replay run.db --layer block3.1 --at 120\n"
    "  verbatim replay run.db --until 99 --keep-going --format json\n"
    "  verbatim replay run.db --stages 4 -o replayed.db";

Status CheckReplay(const ReplayOptions& options) {
  const ReexecutionRequest& request = options.request;
  std::vector<fs::path> records{request.record};
  if (options.layer.has_value() != options.at.has_value()) {
    return UsageError("--layer and --at go together: one version of one layer",
                      "Example: --layer block3.1 --at 120");
  }
  if (!request.output.empty()) {
    if (IsPartOfRecord(request.output, request.record)) {
      return UsageError(fmt::format("-o {} is the replayed record itself, or a part of it",
                                    request.output.string()),
                        "Name another file for the record of the replay.");
    }
    if (request.selection.subnet || options.layer) {
      return UsageError("a causal cone makes no record: a record holds subnets without gaps",
                        "Leave out -o, or replay a prefix with --until.");
    }
    RETURN_IF_ERROR(CheckDestination(request.output, request.force));
    records.push_back(request.output);
  }
  RETURN_IF_ERROR(CheckReportFiles({"--report", options.report}, options.also, records));
  return CheckDataFolder(request.data);
}

Status CheckRanks(ReplayOptions& options) {
  ReexecutionRequest& request = options.request;
  if (!request.place) return {};
  if (options.explain) {
    return NotOnRanks("--explain looks for its tensor",
                      "Leave it out, and explain what is found in one process.");
  }
  request.place->task_json = DescribeRecordTask("replay");
  return SettleStages(*request.place, request.layout);
}

Result<int> Replay(ReplayOptions& options, const Invocation& invocation) {
  RETURN_IF_ERROR(CheckReplay(options));
  if (options.layer) options.request.selection.version = {*options.layer, *options.at};
  ASSIGN_OR_RETURN(const auto reader, RecordReader::Open(options.request.record));
  RETURN_IF_ERROR(RefuseStepRun(*reader, "replay"));
  RETURN_IF_ERROR(SettleRecordedDevice(*reader, options.request.place));
  const auto numerics = RecordedNumerics(*reader);
  if (numerics && NeedsForward(invocation, *numerics)) {
    return tl::unexpected(ForwardToEngine(invocation.argv, *numerics));
  }
  if (options.request.place) {
    options.request.place->numerics = numerics.value_or(Numerics::kNative);
  }
  Verdict verdict = Examine(*reader, options.request.record.string(), invocation);
  verdict.kind = VerdictKind::kReplay;
  // What a damaged record says cannot be executed.
  if (verdict.damaged) SayNotReexecuted(verdict);
  if (!verdict.damaged) {
    RETURN_IF_ERROR(ReexecuteAndCompare(*reader, options.request, invocation, verdict));
    if (options.explain) {
      ExplainFirstDifference(*reader, nullptr,
                             {options.request.data, options.request.layout.device_memory},
                             invocation, verdict);
    }
  }
  RETURN_IF_ERROR(WriteResult(RenderVerdict(options.format, verdict, *reader, nullptr),
                              {"--report", options.report}));
  RETURN_IF_ERROR(WriteFurtherReports(options.also, verdict, *reader, nullptr));
  return verdict.exit_code();
}

Result<int> ReplayHere(ReplayOptions options, const Invocation& invocation) {
  ReexecutionRequest& request = options.request;
  ASSIGN_OR_RETURN(request.place, FindPlace(request.ranks));
  RETURN_IF_ERROR(CheckRanks(options));
  return OnRanks(request.place, invocation, [&] {
    if (!request.place || request.place->is_first()) return Replay(options, invocation);
    return WorkOnRecord(request.place, "replay", request.record, request.data, std::nullopt,
                        invocation);
  });
}

void AddSelectionOptions(CLI::App& command, ReplayOptions& options) {
  CLI::Option* until = command
                           .add_option("--until", options.request.selection.until,
                                       "Replays subnets 0 to K only. Example: --until 99")
                           ->type_name("K")
                           ->check(WholeNumber(0, kMaxSubnets - 1));
  CLI::Option* subnet =
      command
          .add_option("--subnet", options.request.selection.subnet,
                      "Replays subnet K and what its weights depend on. Example: --subnet 120")
          ->type_name("K")
          ->check(WholeNumber(0, kMaxSubnets - 1))
          ->excludes(until);
  CLI::Option* layer =
      command
          .add_option("--layer", options.layer,
                      "With --at: replays what one version of a layer depends on. Example: --layer "
                      "block3.1 --at 120")
          ->type_name("NAME|ID")
          ->excludes(until)
          ->excludes(subnet);
  command
      .add_option("--at", options.at,
                  "The version of --layer that is current after subnet K. Example: --at 120")
      ->type_name("K")
      ->check(WholeNumber(0, kMaxSubnets - 1))
      ->needs(layer);
}

void AddRecordOptions(CLI::App& command, ReexecutionRequest& request) {
  CLI::Option* output =
      command
          .add_option("-o,--output", request.output,
                      "Records the replay in a record of its own. Example: -o replayed.db")
          ->type_name("OUT.db")
          ->check(NamedPath());
  command
      .add_flag("--force", request.force,
                "Overwrites an existing record. Example: -o replayed.db --force")
      ->needs(output);
  command
      .add_option("--record", request.record_level,
                  "What to record and compare, as far as the record has it: losses, weights or "
                  "full; the record's level if not given. Example: --record full")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"losses", "weights", "full"}));
}

}  // namespace

void AddReplayCommand(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<ReplayOptions>();
  options->request.layout.in_flight = 4;
  options->request.announce = true;
  CLI::App* command =
      app.add_subcommand("replay", "Executes a recorded run again and compares as it goes");
  command->footer(kFooter);
  command->add_option("record", options->request.record, "The record to replay. Example: run.db")
      ->required()
      ->type_name("RUN.db");
  AddSelectionOptions(*command, *options);
  AddLayoutOptions(*command, options->request.layout);
  AddRecordOptions(*command, options->request);
  command->add_flag("--keep-going", options->request.keep_going,
                    "Goes on after the first difference and tells all origins from what they "
                    "taint. Example: --keep-going");
  AddExplainOption(*command, options->explain);
  AddReexecutionOptions(*command, options->request);
  AddVerdictFormatOption(*command, options->format);
  command
      ->add_option("--report", options->report,
                   "Writes the report to a file instead of standard output. Example: --report "
                   "replay.txt")
      ->type_name("FILE")
      ->check(NamedPath());
  AddFurtherReportsOption(*command, options->also);
  command->callback([options, &invocation] {
    invocation.action = [options, &invocation] { return ReplayHere(*options, invocation); };
  });
}

}  // namespace verbatim
