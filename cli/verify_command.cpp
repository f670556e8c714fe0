#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include "cli/commands.h"
#include "cli/forward.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/version.h"
#include "store/reader.h"
#include "verify/comparator.h"
#include "verify/examine.h"
#include "verify/report.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

struct VerifyOptions {
  fs::path record;
  std::string reexecute;  ///< "all", a number, or empty
  std::string format = "text";
  fs::path output;
  std::optional<fs::path> data;
};

constexpr const char* kFooter =
    "Looks at the record's integrity first, then at the stream, then at causality: whether every\n"
    "access read and updated the version that its causal predecessor left. --reexecute then "
    "trains\n"
    "the recorded subnets again, one after another, and compares every bit that was recorded.\n"
    "\n"
    "Exit code 0: nothing found; 1: a difference or violation; 3: the record is damaged.\n"
    "\n"
    "Examples:\n"
    "  verbatim verify run.db\n"
    "  verbatim verify run.db --reexecute all\n"
    "  verbatim verify run.db --reexecute 50 --data /data/digits\n"
    "  verbatim verify run.db --format json -o verdict.json";

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

/// Whether `path` is the record or one of the files that SQLite keeps beside it.
bool IsPartOfRecord(const fs::path& path, const fs::path& record) {
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    const fs::path part = record.string() + suffix;
    std::error_code error;
    if (fs::equivalent(path, part, error)) return true;
    if (fs::weakly_canonical(path, error) == fs::weakly_canonical(part, error)) return true;
  }
  return false;
}

Status CheckPaths(const VerifyOptions& options) {
  std::error_code error;
  if (!options.output.empty() && IsPartOfRecord(options.output, options.record)) {
    return UsageError(
        fmt::format("-o {} is the record itself, or a part of it", options.output.string()),
        "Name another file for the report.");
  }
  if (options.data && !fs::is_directory(*options.data, error)) {
    return BadInput(fmt::format("--data {} is no folder", options.data->string()),
                    "Name the folder that holds the data set's files.");
  }
  return {};
}

/// As recorded: the number of threads bears on the bits.
Result<std::int64_t> RecordedThreads(const RecordReader& reader) {
  ASSIGN_OR_RETURN(const auto environment, reader.Environment());
  for (const EnvironmentRow& row : environment) {
    if (row.key != "threads_per_stage") continue;
    std::int64_t threads = 0;
    const char* end = row.value.data() + row.value.size();
    const auto [stop, error] = std::from_chars(row.value.data(), end, threads);
    if (error == std::errc() && stop == end && threads >= 1) return threads;
    return BadInput(fmt::format("the recorded threads_per_stage is '{}'", row.value),
                    "The record's environment was changed; it cannot be re-executed.");
  }
  return 1;
}

Status Reexecute(const RecordReader& reader, const VerifyOptions& options,
                 const Invocation& invocation, Verdict& verdict) {
  const std::int64_t subnets =
      std::min(*ParseCount(options.reexecute), verdict.counts.subnets_audited);
  const bool whole = subnets == verdict.counts.subnets_planned;
  ProgressBar progress("re-executing", subnets, false, invocation.no_color);
  ASSIGN_OR_RETURN(Comparator comparator,
                   Comparator::Create(reader, options.record.string(),
                                      [&](std::int64_t done) { progress.Update(done); }));
  ASSIGN_OR_RETURN(const auto evaluations, reader.Evaluations());
  ReexecuteOptions request;
  request.data_folder = options.data;
  request.subnets = subnets;
  request.evaluate = whole && !evaluations.empty();
  ASSIGN_OR_RETURN(request.threads_per_stage, RecordedThreads(reader));
  RETURN_IF_ERROR(invocation.engine->Reexecute(verdict.run, request, comparator));
  RETURN_IF_ERROR(comparator.status());
  comparator.AddTo(verdict);
  return {};
}

/// The spec's numeric profile, which must be set before the engine starts; nothing where the record
/// is too damaged to be re-executed.
std::optional<Numerics> RecordedNumerics(const RecordReader& reader) {
  const auto run = reader.Run();
  if (!run) return std::nullopt;
  const auto spec = ParseSpec(run->spec_json, "the recorded spec");
  return spec ? std::optional(spec->numerics) : std::nullopt;
}

Result<int> Verify(const VerifyOptions& options, const Invocation& invocation) {
  RETURN_IF_ERROR(CheckPaths(options));
  ASSIGN_OR_RETURN(const auto reader, RecordReader::Open(options.record));
  const bool reexecute = !options.reexecute.empty();
  if (reexecute) {
    const auto numerics = RecordedNumerics(*reader);
    if (numerics && NeedsForward(invocation, *numerics)) {
      return tl::unexpected(ForwardToEngine(invocation.argv, *numerics));
    }
  }
  Verdict verdict;
  {
    ProgressBar progress("verifying", reader->SubnetCount().value_or(0), false,
                         invocation.no_color);
    verdict = ExamineRecord(*reader, options.record.string(),
                            [&](std::int64_t done) { progress.Update(done); });
  }
  // What a damaged record says cannot be executed.
  if (reexecute && !verdict.damaged) {
    RETURN_IF_ERROR(Reexecute(*reader, options, invocation, verdict));
  }
  const bool json = options.format == "json";
  RETURN_IF_ERROR(
      WriteResult(json ? RenderJson(verdict, ToolVersion()) : RenderText(verdict), options.output));
  return verdict.exit_code();
}

}  // namespace

void AddVerifyCommand(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* command =
      app.add_subcommand("verify", "Proves a record intact, causal and, re-executed, equal");
  command->footer(kFooter);
  command->add_option("record", options->record, "The record to verify. Example: run.db")
      ->required()
      ->type_name("RUN.db");
  command
      ->add_option("--reexecute", options->reexecute,
                   "Trains the recorded subnets again and compares: all of them, or the first N. "
                   "Example: --reexecute all")
      ->type_name("all|N")
      ->check(CLI::Validator(CountProblem, ""));
  command
      ->add_option("--data", options->data,
                   "Folder of the data set, if it is not where the spec says. Example: --data "
                   "/data/digits")
      ->type_name("DIR");
  AddFormatOption(*command, options->format);
  command
      ->add_option("-o,--output", options->output,
                   "Writes the report to a file instead of standard output. Example: -o "
                   "verdict.txt")
      ->type_name("FILE");
  command->callback([options, &invocation] {
    invocation.action = [options, &invocation] { return Verify(*options, invocation); };
  });
}

}  // namespace verbatim
