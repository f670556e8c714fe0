#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "cli/commands.h"
#include "cli/output.h"
#include "supernet/search_space.h"
#include "supernet/spec.h"
#include "supernet/spec_names.h"
#include "verify/text.h"

namespace verbatim {
namespace {

constexpr const char* kFooter =
    "Says what the spec holds, or where it is wrong: file, line, column and field. Needs no data;\n"
    "whether the data fits is checked when a run starts.\n"
    "\n"
    "Examples:\n"
    "  verbatim check digits.json\n"
    "  verbatim check digits.json && verbatim train digits.json -o run.db";

/// Positions and layers, as the spec alone tells them.
struct Size {
  std::int64_t blocks = 0;
  std::int64_t layers = 2;  ///< stem and head
};

Size Measure(const Spec& spec) {
  Size size;
  for (const BlockSpec& block : spec.supernet.blocks) {
    size.blocks += block.repeat;
    size.layers += block.repeat * static_cast<std::int64_t>(block.candidates.size());
  }
  return size;
}

/// CIFAR's shapes are known without its files, so the whole search space can be laid out.
Status CheckShapes(const Spec& spec) {
  if (spec.data.format == DataFormat::kIdx) return {};
  const std::int64_t classes = spec.data.format == DataFormat::kCifar10 ? 10 : 100;
  RETURN_IF_ERROR(SearchSpace::Build(spec, ActivationShape{3, 32, 32}, classes));
  return {};
}

std::string SamplerText(const SamplerSpec& sampler) {
  const std::string kind(NameOf(kSamplerNames, sampler.kind));
  return sampler.file.empty() ? kind : fmt::format("{} from {}", kind, sampler.file);
}

std::string Describe(const Spec& spec) {
  const Size size = Measure(spec);
  const TrainingSpec& training = spec.training;
  std::string text;
  const auto line = [&text](std::string_view label, const std::string& value) {
    text += fmt::format("  {:<11} {}\n", label, value);
  };
  line("seed", fmt::format("{}", spec.seed));
  line("numerics", ToString(spec.numerics));
  line("data", fmt::format("{} in {}", ToString(spec.data.format), spec.data.folder));
  line("supernet", fmt::format("stem, {}, head; {}", FormatCount(size.blocks, "block", "blocks"),
                               FormatCount(size.layers, "layer", "layers")));
  line("sampler", SamplerText(spec.sampler));
  line("training",
       fmt::format("{}, batch {} in {}", FormatCount(training.subnets, "subnet", "subnets"),
                   FormatCount(training.batch),
                   FormatCount(training.microbatches, "micro-batch", "micro-batches")));
  line("optimizer",
       fmt::format("{}, learning rate {} {}", NameOf(kOptimizerNames, training.optimizer.kind),
                   NameOf(kLrNames, training.lr.kind), training.lr.base));
  line("evaluation", FormatCount(spec.evaluation.subnets, "subnet", "subnets"));
  line("record", fmt::format("level {}", ToString(spec.record_level)));
  return text;
}

Result<int> CheckSpec(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(const Spec spec, ReadSpec(path));
  RETURN_IF_ERROR(CheckShapes(spec));
  RETURN_IF_ERROR(WriteToStdout(
      fmt::format("{}: {} is a valid spec\n{}", path.string(), spec.name, Describe(spec))));
  return 0;
}

}  // namespace

void AddCheckCommand(CLI::App& app, Invocation& invocation) {
  auto path = std::make_shared<std::filesystem::path>();
  CLI::App* command = app.add_subcommand("check", "Validates a spec and says what it holds");
  command->footer(kFooter);
  command->add_option("spec", *path, "The spec to validate. Example: digits.json")
      ->required()
      ->type_name("SPEC");
  command->callback(
      [path, &invocation] { invocation.action = [path] { return CheckSpec(*path); }; });
}

}  // namespace verbatim
