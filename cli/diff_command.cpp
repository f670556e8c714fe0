#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "cli/commands.h"
#include "cli/data_option.h"
#include "cli/explaining.h"
#include "cli/forward.h"
#include "cli/layout_options.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "cli/reexecution.h"
#include "cli/render_verdict.h"
#include "cli/step_runs.h"
#include "store/reader.h"
#include "verify/diff.h"
#include "verify/first_difference.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

struct DiffOptions {
  fs::path a;
  fs::path b;
  fs::path rename;
  bool replicas = false;
  bool first = false;
  bool explain = false;
  std::optional<std::int64_t> device_memory;
  std::optional<fs::path> data;
  std::string format = "text";
  fs::path output;
  std::vector<std::string> also;
};

constexpr const char* kFooter =
    "Compares two records of one spec, or of specs that lay out the same layers: environments,\n"
    "specs and layouts first, then every subnet that both have. Of the differences it says which\n"
    "are origins (all their inputs were equal) and which are tainted (they follow from others).\n"
    "\n"
    "With --first only the trees over the records' subnets are compared, and the rows of the "
    "first\n"
    "subnet that differs: a tenth of a second, however long the records are. What else differs, "
    "and\n"
    "whether rows were changed after they were written, is not looked at then.\n"
    "\n"
    "Step runs, which other trainers recorded, meet by the names of layers and the numbers of "
    "steps,\n"
    "wherever both have some: other lengths, intervals and beginnings are compared where they "
    "meet.\n"
    "\n"
    "Exit code 0: equal in everything that both hold; 1: a difference; 3: a record is damaged.\n"
    "\n"
    "Examples:\n"
    "  verbatim diff monday.db tuesday.db\n"
    "  verbatim diff monday.db tuesday.db --explain\n"
    "  verbatim diff monday.db tuesday.db --first\n"
    "  verbatim diff ours.db theirs.db --rename names.json\n"
    "  verbatim diff run.rank0.db run.rank1.db --replicas\n"
    "  verbatim diff monday.db tuesday.db --format json -o difference.json\n"
    "  verbatim diff monday.db tuesday.db --format html -o difference.html";

Status CheckPaths(const DiffOptions& options) {
  std::error_code error;
  if (fs::equivalent(options.a, options.b, error)) {
    return UsageError(
        fmt::format("{} and {} are the same file", options.a.string(), options.b.string()),
        "Name two records.");
  }
  RETURN_IF_ERROR(CheckReportFiles({"-o", options.output}, options.also, {options.a, options.b}));
  RETURN_IF_ERROR(RefuseInputs({{"-o", options.output}}, {options.rename}));
  const bool wants_page =
      options.format == "html" ||
      std::any_of(options.also.begin(), options.also.end(),
                  [](const std::string& file) { return fs::path(file).extension() == ".html"; });
  if (!options.first || !wants_page) return {};
  return UsageError("--first reads no more than one subnet, but a page shows the whole run",
                    "Leave out --first, or choose another format.");
}

/// Writes the verdict where it was asked for; returns the exit code.
Result<int> Report(const DiffOptions& options, const Verdict& verdict, const RecordReader& a,
                   const RecordReader& b) {
  RETURN_IF_ERROR(
      WriteResult(RenderVerdict(options.format, verdict, a, &b), {"-o", options.output}));
  RETURN_IF_ERROR(WriteFurtherReports(options.also, verdict, a, &b));
  return verdict.exit_code();
}

/// --explain computes on tensors. One process can have one numeric profile only.
Status BecomeEngine(const RecordReader& a, const RecordReader& b, const Invocation& invocation) {
  const auto of_a = RecordedNumerics(a);
  const auto of_b = RecordedNumerics(b);
  if (!of_a || !of_b) return {};
  if (of_a != of_b) {
    return UsageError(fmt::format("--explain: A has the numeric profile {}, B has {}",
                                  ToString(*of_a), ToString(*of_b)),
                      "One process computes under one profile: explain each with verbatim replay.");
  }
  if (!NeedsForward(invocation, *of_a)) return {};
  return tl::unexpected(ForwardToEngine(invocation.argv, *of_a));
}

/// What is made for the runs of this program.
Status RefuseOfStepRuns(const RecordReader& a, const RecordReader& b, const char* option) {
  if (a.Kind() != RunKind::kSteps && b.Kind() != RunKind::kSteps) return {};
  return UsageError(fmt::format("{} is not for step runs, which another trainer recorded", option),
                    "Leave it out: all that both records hold is compared.");
}

Result<int> Diff(const DiffOptions& options, const Invocation& invocation) {
  RETURN_IF_ERROR(CheckPaths(options));
  ASSIGN_OR_RETURN(const auto a, RecordReader::Open(options.a));
  ASSIGN_OR_RETURN(const auto b, RecordReader::Open(options.b));
  if (options.first || options.explain) {
    const char* const option = options.first ? "--first" : "--explain";
    RETURN_IF_ERROR(RefuseOfStepRuns(*a, *b, option));
  }
  StepDiffOptions steps{.renames = {}, .replicas = options.replicas};
  ASSIGN_OR_RETURN(steps.renames, ReadRenames(options.rename));
  if (options.first) {
    ASSIGN_OR_RETURN(const Verdict found,
                     FindFirstDifference(*a, options.a.string(), *b, options.b.string()));
    return Report(options, found, *a, *b);
  }
  if (options.explain) {
    RETURN_IF_ERROR(CheckDataFolder(options.data));
    RETURN_IF_ERROR(BecomeEngine(*a, *b, invocation));
  }
  const std::int64_t subnets = std::max(a->SubnetCount().value_or(0), b->SubnetCount().value_or(0));
  Verdict verdict;
  {
    ProgressBar progress("comparing", subnets, false, invocation.no_color);
    ASSIGN_OR_RETURN(verdict, CompareRecords(
                                  *a, options.a.string(), *b, options.b.string(),
                                  [&](std::int64_t done) { progress.Update(done); }, steps));
  }
  if (options.explain) {
    ExplainFirstDifference(*a, b.get(), {options.data, options.device_memory}, invocation, verdict);
  }
  return Report(options, verdict, *a, *b);
}

}  // namespace

void AddDiffCommand(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<DiffOptions>();
  CLI::App* command = app.add_subcommand("diff", "Compares two records to the last subnet");
  command->footer(kFooter);
  command->add_option("a", options->a, "Record A. Example: monday.db")
      ->required()
      ->type_name("A.db");
  command->add_option("b", options->b, "Record B. Example: tuesday.db")
      ->required()
      ->type_name("B.db");
  CLI::Option* rename = AddRenameOption(*command, options->rename);
  command
      ->add_flag(
          "--replicas", options->replicas,
          "Of step runs: A and B are two ranks of one run, which see other batches. Compares "
          "weights, buffers and optimizer state only. Example: verbatim diff run.rank0.db "
          "run.rank1.db --replicas")
      ->excludes(rename);
  CLI::Option* first = command->add_flag(
      "--first", options->first,
      "Finds the first difference through the records' trees, and reads nothing else. Example: "
      "verbatim diff monday.db tuesday.db --first");
  CLI::Option* explain = AddExplainOption(*command, options->explain)->excludes(first);
  AddDeviceMemoryOption(*command, options->device_memory)->needs(explain);
  command
      ->add_option("--data", options->data,
                   "With --explain: folder of the data set, if it is not where the specs say. "
                   "Example: --data /data/digits")
      ->type_name("DIR")
      ->check(NamedPath());
  AddVerdictFormatOption(*command, options->format);
  command
      ->add_option("-o,--output", options->output,
                   "Writes the report to a file instead of standard output. Example: -o "
                   "difference.txt")
      ->type_name("FILE")
      ->check(NamedPath());
  AddFurtherReportsOption(*command, options->also);
  command->callback([options, &invocation] {
    invocation.action = [options, &invocation] { return Diff(*options, invocation); };
  });
}

}  // namespace verbatim
