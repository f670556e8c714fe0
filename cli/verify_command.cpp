#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "cli/commands.h"
#include "cli/data_option.h"
#include "cli/explaining.h"
#include "cli/forward.h"
#include "cli/head_options.h"
#include "cli/layout_options.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "cli/rank_options.h"
#include "cli/reexecution.h"
#include "cli/render_verdict.h"
#include "cli/step_runs.h"
#include "store/reader.h"
#include "verify/against.h"
#include "verify/head_check.h"
#include "verify/part_check.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

struct VerifyOptions {
  ReexecutionRequest request;
  std::string reexecute;                   ///< "all", a number, or empty
  std::optional<std::uint64_t> draw_seed;  ///< the spec's seed where absent
  bool explain = false;
  fs::path rename;   ///< of a step run's reference
  fs::path against;  ///< a recorded reference; empty: none
  std::vector<fs::path> heads;
  fs::path key;  ///< that the heads must be signed with; empty: any or none
  std::vector<fs::path> parts;
  std::string format = "text";
  fs::path output;
  std::vector<std::string> also;  ///< further reports
};

/// Subnets in flight where a re-execution runs in several processes.
constexpr std::int64_t kInFlightOnRanks = 4;

constexpr const char* kFooter =
    "Looks at the record's integrity first, then at the stream, then at causality: whether every\n"
    "access read and updated the version that its causal predecessor left. --reexecute then "
    "trains\n"
    "recorded subnets again, one after another, and compares every bit that was recorded: all of\n"
    "them, or N drawn at random together with the subnets that their weights depend on.\n"
    "\n"
    "--head compares the record with heads that were kept elsewhere (verbatim head), which shows\n"
    "whether it was changed, cut or replaced since, even by somebody who knows the format.\n"
    "--part compares it with what the ranks of a run on several hosts kept of their own work.\n"
    "\n"
    "Of a step run, which another trainer recorded, the same is looked at, and whether anybody but "
    "an\n"
    "update wrote a layer; it cannot be executed here.\n"
    "\n"
    "Exit code 0: nothing found; 1: a difference or violation; 3: the record is damaged; 4: this\n"
    "machine cannot decide, such as in another numeric environment.\n"
    "\n"
    "Examples:\n"
    "  verbatim verify run.db\n"
    "  verbatim verify run.db --reexecute all\n"
    "  verbatim verify run.db --reexecute 50 --draw-seed 7 --data /data/digits\n"
    "  verbatim verify run.db --head /kept/run.head --key run.key.pub\n"
    "  verbatim verify run.db --part /from/node1/run.db.rank-1 --part /from/node2/run.db.rank-2\n"
    "  verbatim verify run.db --against reference.db --also report.html\n"
    "  verbatim verify run.db --format json -o verdict.json\n"
    "  verbatim verify run.db --format markdown >> $GITHUB_STEP_SUMMARY\n"
    "  verbatim verify run.db --reexecute 50 --also verdict.xml --also verdict.html";

/// "all" is the largest number.
std::optional<std::int64_t> ParseCount(const std::string& text) {
  if (text == "all") return std::numeric_limits<std::int64_t>::max();
  std::int64_t count = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, count);
  return error == std::errc() && stop == end && count >= 1 ? std::optional(count) : std::nullopt;
}

std::string CountProblem(const std::string& text) {
  return ParseCount(text) ? "" : fmt::format("'{}' is neither 'all' nor a number from 1", text);
}

Status CheckPaths(const VerifyOptions& options) {
  std::vector<fs::path> records{options.request.record};
  if (!options.against.empty()) records.push_back(options.against);
  RETURN_IF_ERROR(CheckReportFiles({"-o", options.output}, options.also, records));
  std::vector<OutputOption> outputs{{"-o", options.output}};
  for (const std::string& file : options.also) outputs.push_back({"--also", file});
  RETURN_IF_ERROR(RefuseInputs(outputs, options.parts));
  std::error_code error;
  if (fs::equivalent(options.against, options.request.record, error)) {
    return UsageError(fmt::format("--against {} is the record itself", options.against.string()),
                      "Name the record of another run.");
  }
  return CheckDataFolder(options.request.data);
}

/// What --reexecute and --draw-seed ask for.
Result<ReplaySelection> SelectionOf(const VerifyOptions& options, const RunInfo& run) {
  if (options.reexecute == "all") return ReplaySelection{};
  ASSIGN_OR_RETURN(const Spec spec, ParseSpec(run.spec_json, "the recorded spec"));
  ReplaySelection selection;
  selection.draw = {*ParseCount(options.reexecute), options.draw_seed.value_or(spec.seed)};
  return selection;
}

Status CheckRanks(VerifyOptions& options) {
  ReexecutionRequest& request = options.request;
  if (!request.place) return {};
  if (options.explain) {
    return NotOnRanks("--explain looks for its tensor",
                      "Leave it out, and explain what is found in one process.");
  }
  request.place->task_json = DescribeRecordTask("verify");
  request.layout.in_flight = kInFlightOnRanks;
  return SettleStages(*request.place, request.layout);
}

/// What is made for the runs of this program.
Status CheckStepOptions(const VerifyOptions& options, const RecordReader& reader) {
  if (!options.reexecute.empty()) RETURN_IF_ERROR(RefuseStepRun(reader, "--reexecute"));
  if (options.parts.empty() || reader.Kind() != RunKind::kSteps) return {};
  return UsageError("--part: each rank of a step run keeps a record of its own",
                    "Compare the ranks: verbatim diff run.rank0.db run.rank1.db --replicas");
}

Result<int> Verify(VerifyOptions& options, const Invocation& invocation) {
  RETURN_IF_ERROR(CheckPaths(options));
  ASSIGN_OR_RETURN(const auto reader, RecordReader::Open(options.request.record));
  std::unique_ptr<RecordReader> reference;
  if (!options.against.empty()) {
    ASSIGN_OR_RETURN(reference, RecordReader::Open(options.against));
  }
  RETURN_IF_ERROR(CheckStepOptions(options, *reader));
  StepDiffOptions steps;
  ASSIGN_OR_RETURN(steps.renames, ReadRenames(options.rename));
  ASSIGN_OR_RETURN(const auto heads, ReadKeptHeads(options.heads));
  ASSIGN_OR_RETURN(auto parts, OpenParts(options.parts));
  std::optional<PublicKey> key;
  if (!options.key.empty()) {
    ASSIGN_OR_RETURN(key, ReadPublicKey(options.key));
  }
  const bool reexecute = !options.reexecute.empty();
  if (reexecute) {
    RETURN_IF_ERROR(SettleRecordedDevice(*reader, options.request.place));
    const auto numerics = RecordedNumerics(*reader);
    if (numerics && NeedsForward(invocation, *numerics)) {
      return tl::unexpected(ForwardToEngine(invocation.argv, *numerics));
    }
    if (options.request.place) {
      options.request.place->numerics = numerics.value_or(Numerics::kNative);
    }
  }
  Verdict verdict = Examine(*reader, options.request.record.string(), invocation);
  if (!heads.empty()) AddHeadCheck(*reader, heads, key, verdict);
  if (!parts.empty()) RETURN_IF_ERROR(AddPartCheck(*reader, parts, verdict));
  // What a damaged record says cannot be executed.
  if (reexecute && verdict.damaged) SayNotReexecuted(verdict);
  if (reexecute && !verdict.damaged) {
    ASSIGN_OR_RETURN(options.request.selection, SelectionOf(options, verdict.run));
    RETURN_IF_ERROR(ReexecuteAndCompare(*reader, options.request, invocation, verdict));
  }
  if (reference && !verdict.damaged) {
    ProgressBar progress("comparing", reader->SubnetCount().value_or(0), false,
                         invocation.no_color);
    RETURN_IF_ERROR(CompareAgainst(
        *reader, *reference, options.against.string(),
        [&](std::int64_t done) { progress.Update(done); }, verdict, steps));
  }
  // Only now is it known which difference is the first.
  if (options.explain) {
    const RecordReader* other = verdict.is_reference_difference ? reference.get() : nullptr;
    ExplainFirstDifference(*reader, other,
                           {options.request.data, options.request.layout.device_memory}, invocation,
                           verdict);
  }
  RETURN_IF_ERROR(WriteResult(RenderVerdict(options.format, verdict, *reader, reference.get()),
                              {"-o", options.output}));
  RETURN_IF_ERROR(WriteFurtherReports(options.also, verdict, *reader, reference.get()));
  return verdict.exit_code();
}

Result<int> VerifyHere(VerifyOptions options, const Invocation& invocation) {
  ReexecutionRequest& request = options.request;
  ASSIGN_OR_RETURN(auto place, FindPlace(request.ranks));
  // What computes nothing is one process's work: nobody waits for the others.
  if (options.reexecute.empty()) {
    return place && !place->is_first() ? Result<int>(0) : Verify(options, invocation);
  }
  request.place = std::move(place);
  RETURN_IF_ERROR(CheckRanks(options));
  return OnRanks(request.place, invocation, [&] {
    if (!request.place || request.place->is_first()) return Verify(options, invocation);
    return WorkOnRecord(request.place, "verify", request.record, request.data, std::nullopt,
                        invocation);
  });
}

}  // namespace

void AddVerifyCommand(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* command =
      app.add_subcommand("verify", "Proves a record intact, causal and, re-executed, equal");
  command->footer(kFooter);
  command->add_option("record", options->request.record, "The record to verify. Example: run.db")
      ->required()
      ->type_name("RUN.db");
  CLI::Option* reexecute =
      command
          ->add_option("--reexecute", options->reexecute,
                       "Trains recorded subnets again and compares: all of them, or N drawn at "
                       "random with their causal cones. Example: --reexecute all")
          ->type_name("all|N")
          ->check(CLI::Validator(CountProblem, ""));
  command
      ->add_option("--draw-seed", options->draw_seed,
                   "Seed of that draw; the spec's seed if not given. Example: --draw-seed 7")
      ->type_name("SEED")
      ->check(SeedNumber())
      ->needs(reexecute);
  AddRecomputeOption(*command, options->request.layout.recompute)->needs(reexecute);
  AddDeviceMemoryOption(*command, options->request.layout.device_memory)->needs(reexecute);
  AddReexecutionOptions(*command, options->request);
  AddExplainOption(*command, options->explain)->needs(reexecute);
  command
      ->add_option("--against", options->against,
                   "Compares with a recorded reference as well. Example: --against reference.db")
      ->type_name("REF.db")
      ->check(NamedPath());
  AddRenameOption(*command, options->rename)->needs("--against");
  AddKeptHeadOptions(*command, options->heads, options->key);
  command
      ->add_option(
          "--part", options->parts,
          "A file that a rank kept of its own part of the run; may be given several times. "
          "Example: --part run.db.rank-1")
      ->type_name("FILE")
      ->check(NamedPath())
      ->expected(1)
      ->take_all();
  AddVerdictFormatOption(*command, options->format);
  command
      ->add_option("-o,--output", options->output,
                   "Writes the report to a file instead of standard output. Example: -o "
                   "verdict.txt")
      ->type_name("FILE")
      ->check(NamedPath());
  AddFurtherReportsOption(*command, options->also);
  command->callback([options, &invocation] {
    invocation.action = [options, &invocation] { return VerifyHere(*options, invocation); };
  });
}

}  // namespace verbatim
