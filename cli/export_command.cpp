#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/output_file.h"
#include "cli/step_runs.h"
#include "cli/version.h"
#include "store/checkpoint_export.h"
#include "store/checkpoint_files.h"
#include "store/reader.h"
#include "supernet/spec_limits.h"
#include "verify/layer_table.h"

namespace verbatim {
namespace {

struct ExportOptions {
  std::filesystem::path record;
  std::filesystem::path output;
  std::optional<std::int64_t> subnet;
  std::optional<std::string> choices;
  std::optional<std::int64_t> cut;
  bool optimizer = false;
};

using Choices = std::vector<std::uint16_t>;

constexpr const char* kFooter =
    "Writes weights and buffers of a record's checkpoint as a file in the format safetensors,\n"
    "which Python's package of that name reads: of one subnet, or of the whole supernet. Tensors\n"
    "are named \"block3.1.conv.weight\": layer, then tensor. Checkpoints are taken at the end of a "
    "run\n"
    "and while it goes on (verbatim train --checkpoint-every); the newest is taken here if --at\n"
    "does not name another.\n"
    "\n"
    "Examples:\n"
    "  verbatim export run.db -o supernet.safetensors\n"
    "  verbatim export run.db --subnet 12 -o subnet12.safetensors\n"
    "  verbatim export run.db --choices 0,3,1 -o best.safetensors\n"
    "  verbatim export run.db --at 1000 --optimizer -o supernet1000.safetensors";

tl::unexpected<Error> BadChoices(const std::string& text, const std::string& what) {
  return UsageError(fmt::format("--choices {}: {}", text, what),
                    "Give one candidate's index per choice block, as in --choices 0,3,1.");
}

Result<Choices> ParseChoices(const std::string& text) {
  Choices choices;
  for (std::string_view rest = text;;) {
    const std::string_view item = rest.substr(0, rest.find(','));
    std::uint16_t choice = 0;
    const auto [end, error] = std::from_chars(item.data(), item.data() + item.size(), choice);
    if (error != std::errc() || end != item.data() + item.size()) {
      return BadChoices(text, fmt::format("\"{}\" is no index", item));
    }
    choices.push_back(choice);
    if (item.size() == rest.size()) return choices;
    rest.remove_prefix(item.size() + 1);
  }
}

/// What is to be exported; nothing for the whole supernet.
Result<std::optional<Choices>> WantedChoices(const RecordReader& reader,
                                             const ExportOptions& options) {
  if (options.choices) return ParseChoices(*options.choices);
  if (!options.subnet) return std::nullopt;
  ASSIGN_OR_RETURN(auto subnet, reader.Subnet(*options.subnet, {.accesses = false}));
  if (subnet) return std::move(subnet->choices);
  return UsageError(
      fmt::format("{} has no subnet {}", options.record.string(), *options.subnet),
      fmt::format("Name one that it has (verbatim show {}), or choices: --choices 0,3,1.",
                  options.record.string()));
}

/// The stem's layer, one per choice block, and the head's, in forward order.
Result<std::vector<LayerRow>> LayersOf(const LayerTable& table, const Choices& choices) {
  if (const auto problem = table.ChoicesProblem(choices)) {
    return BadChoices(fmt::format("{}", fmt::join(choices, ",")), *problem);
  }
  std::vector<LayerRow> layers;
  for (int position = 0; position < table.positions(); ++position) {
    layers.push_back(table.layer(table.LayerAt(position, choices)));
  }
  return layers;
}

Result<std::string> SpecName(const RecordReader& reader) {
  ASSIGN_OR_RETURN(const RunInfo run, reader.Run());
  ASSIGN_OR_RETURN(const Spec spec, ParseSpec(run.spec_json, "the recorded spec"));
  return spec.name;
}

Result<ExportedTensors> Collect(const ExportOptions& options) {
  ASSIGN_OR_RETURN(const auto reader, RecordReader::Open(options.record));
  RETURN_IF_ERROR(RefuseStepRun(*reader, "export"));
  ASSIGN_OR_RETURN(const std::vector<CheckpointRow> checkpoints, reader->Checkpoints());
  ASSIGN_OR_RETURN(const CheckpointRow checkpoint,
                   ChooseCheckpoint(checkpoints, options.cut, options.record.string()));
  ASSIGN_OR_RETURN(std::vector<LayerRow> layers, reader->Layers());
  ASSIGN_OR_RETURN(const LayerTable table, LayerTable::Build(std::move(layers)));
  ASSIGN_OR_RETURN(const std::optional<Choices> choices, WantedChoices(*reader, options));
  std::vector<LayerRow> wanted = table.layers();
  if (choices) {
    ASSIGN_OR_RETURN(wanted, LayersOf(table, *choices));
  }
  ASSIGN_OR_RETURN(ExportedTensors exported, ExportLayers(CheckpointFolder(options.record),
                                                          checkpoint, wanted, options.optimizer));
  auto& metadata = exported.content.metadata;
  ASSIGN_OR_RETURN(metadata["spec"], SpecName(*reader));
  metadata["tool"] = fmt::format("verbatim {}", ToolVersion());
  if (options.subnet) metadata["subnet"] = std::to_string(*options.subnet);
  if (choices) metadata["choices"] = fmt::format("{}", fmt::join(*choices, ","));
  return exported;
}

Status WritePieces(const EncodedTensors& encoded, const TextSink& write) {
  for (const std::string_view piece : encoded.Pieces()) RETURN_IF_ERROR(write(piece));
  return {};
}

Result<int> Export(const ExportOptions& options) {
  const OutputOption output{"-o", options.output};
  RETURN_IF_ERROR(CheckOutputs({output}, {options.record}));
  ASSIGN_OR_RETURN(const ExportedTensors exported, Collect(options));
  const EncodedTensors encoded = EncodeSafetensors(exported.content);
  RETURN_IF_ERROR(
      WriteOutput(output, [&](const TextSink& write) { return WritePieces(encoded, write); }));
  return 0;
}

void AddWhatOptions(CLI::App& command, ExportOptions& options) {
  CLI::Option* const subnet =
      command
          .add_option("--subnet", options.subnet,
                      "Exports the layers that this subnet of the record chose. Example: --subnet "
                      "12")
          ->type_name("K")
          ->check(WholeNumber(0, kMaxSubnets - 1));
  command
      .add_option("--choices", options.choices,
                  "Exports the layers of these choices: a candidate's index per choice block. "
                  "Example: --choices 0,3,1")
      ->type_name("LIST")
      ->excludes(subnet);
  command
      .add_option("--at", options.cut,
                  "Takes the checkpoint at this cut (that many subnets had finished) instead of "
                  "the newest. Example: --at 1000")
      ->type_name("CUT")
      ->check(WholeNumber(0, kMaxSubnets));
  command.add_flag("--optimizer", options.optimizer,
                   "Exports the optimizer's state too. Example: --optimizer");
}

}  // namespace

void AddExportCommand(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command =
      app.add_subcommand("export", "Writes a checkpoint's weights as a safetensors file");
  command->footer(kFooter);
  command->add_option("record", options->record, "The record to export from. Example: run.db")
      ->required()
      ->type_name("RUN.db");
  command
      ->add_option("-o,--output", options->output,
                   "The file to write. Example: -o model.safetensors")
      ->required()
      ->type_name("FILE")
      ->check(NamedPath());
  AddWhatOptions(*command, *options);
  command->callback(
      [options, &invocation] { invocation.action = [options] { return Export(*options); }; });
}

}  // namespace verbatim
