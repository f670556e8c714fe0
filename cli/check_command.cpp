#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.h"
#include "cli/commands.h"
#include "cli/data_option.h"
#include "cli/output.h"
#include "supernet/list_sampler.h"
#include "supernet/search_space.h"
#include "supernet/spec.h"
#include "supernet/spec_names.h"
#include "trainer/data/data_set.h"
#include "verify/text.h"

namespace verbatim {
namespace {

constexpr const char* kFooter =
    "Says what the spec holds, or where it is wrong: file, line, column and field; a list of\n"
    "subnets is read too. Where the data is at hand, also whether every shape fits it.\n"
    "\n"
    "Examples:\n"
    "  verbatim check digits.json\n"
    "  verbatim check digits.json --data /data/digits\n"
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

/// Whether the data was there to lay the search space out on. Images give their shape, a text's is
/// in the spec.
Result<bool> CheckAgainstData(const Spec& spec, const std::filesystem::path& folder,
                              bool is_required) {
  std::error_code error;
  if (!is_required && !std::filesystem::is_directory(folder, error)) {
    if (const auto shape = ShapeOfSpec(spec.data)) {
      RETURN_IF_ERROR(SearchSpace::Build(spec, *shape, kByteClasses));
    }
    return false;
  }
  ASSIGN_OR_RETURN(const DataSet data, LoadDataSet(spec, folder));
  RETURN_IF_ERROR(SearchSpace::Build(spec, data.shape(), data.classes()));
  return true;
}

std::string SamplerText(const SamplerSpec& sampler) {
  const std::string kind(NameOf(kSamplerNames, sampler.kind));
  switch (sampler.kind) {
    case SamplerKind::kUniform:
      return kind;
    case SamplerKind::kList:
      return fmt::format("{} from {}", kind, sampler.file);
    case SamplerKind::kFair:
      return sampler.reuse_distance
                 ? fmt::format("{}, uses of a layer {} subnets apart or more", kind,
                               *sampler.reuse_distance)
                 : fmt::format("{}, uses of a layer half a round apart or more", kind);
    case SamplerKind::kReorder:
      return fmt::format("{} in a window of {}: {}", kind, sampler.window,
                         SamplerText(sampler.of.at(0)));
  }
  VERBATIM_CHECK(false, "sampler {}", kind);
}

/// "stem 4, blocks[1] 2"; empty where nothing is read late.
std::string DelayText(const SupernetSpec& supernet) {
  std::string text;
  const auto add = [&text](const std::string& name, const BlockSpec& block) {
    if (block.delay == 0) return;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, block.delay);
  };
  add("stem", supernet.stem);
  for (std::size_t i = 0; i < supernet.blocks.size(); ++i) {
    add(fmt::format("blocks[{}]", i), supernet.blocks[i]);
  }
  add("head", supernet.head);
  return text;
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
  const std::string delays = DelayText(spec.supernet);
  if (!delays.empty()) line("delays", delays);
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

struct CheckOptions {
  std::filesystem::path spec;
  std::optional<std::filesystem::path> data;
};

Result<int> CheckSpec(const CheckOptions& options) {
  ASSIGN_OR_RETURN(const Spec spec, ReadSpec(options.spec));
  const std::filesystem::path spec_folder = options.spec.parent_path();
  if (!spec.sampler.ListFile().empty()) {
    RETURN_IF_ERROR(ReadListedChoices(spec, spec_folder));
  }
  const std::filesystem::path folder = options.data.value_or(DataFolderOf(spec, spec_folder));
  ASSIGN_OR_RETURN(const bool fits, CheckAgainstData(spec, folder, options.data.has_value()));
  const std::string verdict =
      fits ? fmt::format("{} is a valid spec and fits its data", spec.name)
           : fmt::format("{} is a valid spec; {}, since there is no folder {}", spec.name,
                         ShapeOfSpec(spec.data) ? "its shapes fit, but its data was not read"
                                                : "shapes were not checked",
                         folder.string());
  RETURN_IF_ERROR(
      WriteToStdout(fmt::format("{}: {}\n{}", options.spec.string(), verdict, Describe(spec))));
  return 0;
}

}  // namespace

void AddCheckCommand(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<CheckOptions>();
  CLI::App* command = app.add_subcommand("check", "Validates a spec and says what it holds");
  command->footer(kFooter);
  command->add_option("spec", options->spec, "The spec to validate. Example: digits.json")
      ->required()
      ->type_name("SPEC");
  AddDataOption(*command, options->data);
  command->callback(
      [options, &invocation] { invocation.action = [options] { return CheckSpec(*options); }; });
}

}  // namespace verbatim
