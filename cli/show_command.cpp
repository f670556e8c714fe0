#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/output_file.h"
#include "cli/show_files.h"
#include "cli/show_views.h"
#include "store/format.h"
#include "store/reader.h"
#include "supernet/spec_limits.h"

namespace verbatim {
namespace {

struct ShowOptions {
  std::filesystem::path record;
  std::optional<std::int64_t> subnet;
  std::optional<std::int64_t> step;  ///< a step run's, by the trainer's own number
  std::optional<std::string> layer;
  std::string format = "text";
  std::filesystem::path html;
  std::filesystem::path trace;
  std::filesystem::path proof;
  std::vector<std::filesystem::path> heads;
};

constexpr const char* kFooter =
    "Shows what a record holds: by default how the run went, on what layout and in which\n"
    "environment. Two runs with the same content digest are equal in everything recorded.\n"
    "\n"
    "Examples:\n"
    "  verbatim show run.db\n"
    "  verbatim show run.db --subnet 12\n"
    "  verbatim show run.db --subnet 12 --proof subnet12.proof --head /kept/run.head\n"
    "  verbatim show run.db --layer block3.1\n"
    "  verbatim show steps.db --step 1200\n"
    "  verbatim show run.db --format json\n"
    "  verbatim show run.db --html run.html --trace run.trace.json";

Result<std::string> Render(const RecordReader& reader, const ShowOptions& options) {
  const std::string record = options.record.string();
  const ShowFormat format = options.format == "json" ? ShowFormat::kJson : ShowFormat::kText;
  if (options.step) return ShowStep(reader, record, *options.step, format);
  if (options.subnet) return ShowSubnet(reader, record, *options.subnet, format);
  if (options.layer) return ShowLayer(reader, record, *options.layer, format);
  return ShowRun(reader, record, format);
}

/// What a record of this kind has not.
Status CheckKind(const RecordReader& reader, ShowOptions& options) {
  if (reader.Kind() == RunKind::kSupernet) {
    if (!options.step) return {};
    return UsageError(
        fmt::format("{} has subnets, not steps of another trainer", options.record.string()),
        fmt::format("--subnet {} shows one.", *options.step));
  }
  if (!options.trace.empty()) {
    return UsageError("--trace: a step run has no tasks of stages, which a trace shows",
                      "Leave it out.");
  }
  // Either option names a step.
  if (options.subnet) options.step = std::exchange(options.subnet, std::nullopt);
  return {};
}

Result<std::int64_t> RowToProve(const RecordReader& reader, const ShowOptions& options) {
  if (options.step) return FindStep(reader, options.record.string(), *options.step);
  return *options.subnet;
}

Result<int> Show(ShowOptions options) {
  const OutputOption html{"--html", options.html};
  const OutputOption trace{"--trace", options.trace};
  const OutputOption proof{"--proof", options.proof};
  if (!options.proof.empty() && !options.subnet && !options.step) {
    return UsageError("--proof requires --subnet or --step",
                      "verbatim show --help shows how it is used.");
  }
  RETURN_IF_ERROR(CheckOutputs({html, trace, proof}, {options.record}));
  RETURN_IF_ERROR(RefuseInputs({proof}, options.heads));
  ASSIGN_OR_RETURN(const auto reader, RecordReader::Open(options.record));
  RETURN_IF_ERROR(CheckKind(*reader, options));
  if (!html.path.empty()) RETURN_IF_ERROR(ShowHtml(*reader, options.record, html));
  if (!trace.path.empty()) RETURN_IF_ERROR(ShowTrace(*reader, options.record, trace));
  if (!html.path.empty() || !trace.path.empty()) return 0;
  if (!proof.path.empty()) {
    ASSIGN_OR_RETURN(const std::int64_t seq, RowToProve(*reader, options));
    RETURN_IF_ERROR(ShowProof(*reader, options.record, seq, options.heads, proof));
    return 0;
  }
  ASSIGN_OR_RETURN(const std::string text, Render(*reader, options));
  RETURN_IF_ERROR(WriteToStdout(text));
  return 0;
}

}  // namespace

void AddShowCommand(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<ShowOptions>();
  CLI::App* command =
      app.add_subcommand("show", "Shows a record: summary, one subnet, one layer's lineage");
  command->footer(kFooter);
  command->add_option("record", options->record, "The record to show. Example: run.db")
      ->required()
      ->type_name("RUN.db");
  CLI::Option* subnet =
      command
          ->add_option("--subnet", options->subnet,
                       "Shows one subnet: choices, samples, loss, accesses. Example: --subnet 12")
          ->type_name("K")
          ->check(WholeNumber(0, kMaxSubnets - 1));
  CLI::Option* step =
      command
          ->add_option(
              "--step", options->step,
              "Shows one step of a step run, by its trainer's number. Example: --step 1200")
          ->type_name("K")
          ->check(WholeNumber(0, kStepMax))
          ->excludes(subnet);
  CLI::Option* layer =
      command
          ->add_option("--layer", options->layer,
                       "Shows one layer's versions, by name or id. Example: --layer block3.1")
          ->type_name("NAME|ID")
          ->excludes(subnet)
          ->excludes(step);
  command
      ->add_option("--html", options->html,
                   "Writes the record, examined, as a page with charts. Example: --html run.html")
      ->type_name("FILE")
      ->check(NamedPath())
      ->excludes(subnet)
      ->excludes(step)
      ->excludes(layer);
  command
      ->add_option("--trace", options->trace,
                   "Writes what the stages did as a trace for ui.perfetto.dev. Example: --trace "
                   "run.trace.json")
      ->type_name("FILE")
      ->check(NamedPath())
      ->excludes(subnet)
      ->excludes(step)
      ->excludes(layer);
  CLI::Option* proof =
      command
          ->add_option("--proof", options->proof,
                       "With --subnet or --step: writes a proof that it is in the record, to be "
                       "checked with verbatim proof; instead of printing. Example: --subnet 12 "
                       "--proof subnet12.proof")
          ->type_name("FILE")
          ->check(NamedPath());
  command
      ->add_option("--head", options->heads,
                   "With --proof: proves it against the newest head in this file instead of one of "
                   "the record as it is now. Example: --head /kept/run.head")
      ->type_name("HEAD")
      ->check(NamedPath())
      ->expected(1)
      ->needs(proof);
  AddFormatOption(*command, options->format);
  command->callback(
      [options, &invocation] { invocation.action = [options] { return Show(*options); }; });
}

}  // namespace verbatim
