#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "cli/commands.h"
#include "cli/compute_options.h"
#include "cli/data_option.h"
#include "cli/forward.h"
#include "cli/output.h"
#include "cli/output_file.h"
#include "supernet/costs.h"
#include "supernet/stream.h"
#include "verify/text.h"

namespace verbatim {
namespace {

constexpr std::int64_t kMaxRepeat = 100'000;
constexpr const char* kFooter =
    "Measures forward, backward and update of every layer at the spec's micro-batch size, each\n"
    "several times, and takes the medians. The cost file balances stages (train --costs) and is\n"
    "what verbatim simulate computes with. No cost bears on a run's bits.\n"
    "\n"
    "Examples:\n"
    "  verbatim profile digits.json -o costs.json\n"
    "  verbatim profile digits.json -o costs.json --repeat 50 --device cuda\n"
    "  verbatim train digits.json -o run.db --stages 4 --costs costs.json";

std::string Milliseconds(double seconds) {
  return fmt::format("{:.3f}", 1e3 * seconds);
}

std::string LayerTable(const MeasuredSpace& measured) {
  std::size_t width = std::string_view("operator").size();
  for (const Layer& layer : measured.space.layers()) {
    width = std::max(width, Describe(layer.op).size());
  }
  std::string text = fmt::format("  {:<12} {:<{}} {:>10} {:>10} {:>10}\n", "layer", "operator",
                                 width, "forward", "backward", "update");
  for (const Layer& layer : measured.space.layers()) {
    const LayerCost& cost = measured.costs.layers[static_cast<std::size_t>(layer.id)];
    text += fmt::format("  {:<12} {:<{}} {:>10} {:>10} {:>10}\n", layer.name, Describe(layer.op),
                        width, Milliseconds(cost.forward), Milliseconds(cost.backward),
                        Milliseconds(cost.update));
  }
  return text;
}

std::string Report(const ProfileRequest& request, const MeasuredSpace& measured) {
  const TrainingSpec& training = measured.spec.training;
  const RowRange rows = MicrobatchRows(training.batch, training.microbatches, 0);
  std::string text =
      fmt::format("{} of {} on {}, micro-batches of {}, milliseconds, medians of {}\n{}",
                  FormatCount(std::ssize(measured.space.layers()), "layer", "layers"),
                  measured.spec.name, request.device, FormatCount(rows.size(), "row", "rows"),
                  request.repeat, LayerTable(measured));
  if (request.output.empty()) return text;
  const std::string path = ShellPath(request.output.string());
  return text + fmt::format("costs: {}\nnext: verbatim train {} -o run.db --stages 2 --costs {}\n",
                            request.output.string(), ShellPath(request.spec.string()), path);
}

Result<int> Profile(const ProfileRequest& request, const Invocation& invocation) {
  const OutputOption output{"-o", request.output};
  RETURN_IF_ERROR(RefuseInputs({output}, {request.spec}));
  RETURN_IF_ERROR(CheckOutputs({output}, {}));
  RETURN_IF_ERROR(CheckDataFolder(request.data_folder));
  ASSIGN_OR_RETURN(const Spec spec, ReadSpec(request.spec));
  if (NeedsForward(invocation, spec.numerics)) {
    return tl::unexpected(ForwardToEngine(invocation.argv, spec.numerics));
  }
  RETURN_IF_ERROR(CheckProcessor(spec.numerics, DescribeProcessor()));
  ASSIGN_OR_RETURN(const MeasuredSpace measured, invocation.engine->Profile(request));
  if (!request.output.empty()) {
    RETURN_IF_ERROR(
        WriteResult(CostsToJson(measured.costs, measured.space, measured.spec), output));
  }
  if (!request.quiet) RETURN_IF_ERROR(WriteToStdout(Report(request, measured)));
  return 0;
}

}  // namespace

void AddProfileCommand(CLI::App& app, Invocation& invocation) {
  auto request = std::make_shared<ProfileRequest>();
  CLI::App* command =
      app.add_subcommand("profile", "Measures what every layer of a spec costs on this machine");
  command->footer(kFooter);
  command->add_option("spec", request->spec, "The spec to measure. Example: digits.json")
      ->required()
      ->type_name("SPEC");
  command
      ->add_option("-o,--output", request->output,
                   "The cost file to write; an existing one is replaced. Example: -o costs.json")
      ->type_name("FILE")
      ->check(NamedPath());
  command
      ->add_option("--repeat", request->repeat,
                   "Measurements of each layer, of which the median counts. Example: --repeat 50")
      ->type_name("N")
      ->check(WholeNumber(1, kMaxRepeat))
      ->capture_default_str();
  AddComputeOptions(*command, request->device, request->threads_per_stage);
  AddDataOption(*command, request->data_folder);
  command->add_flag("-q,--quiet", request->quiet,
                    "Shows neither progress nor the table. Example: --quiet");
  command->callback([request, &invocation] {
    invocation.action = [request, &invocation] { return Profile(*request, invocation); };
  });
}

}  // namespace verbatim
