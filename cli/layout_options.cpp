#include "cli/layout_options.h"

#include "cli/byte_count.h"
#include "cli/commands.h"
#include "supernet/spec_limits.h"

namespace verbatim {

void AddLayoutOptions(CLI::App& command, LayoutOptions& layout) {
  command
      .add_option(
          "--stages", layout.stages,
          "Pipeline stages: workers that each run a range of blocks; in several processes one "
          "each if not given. Example: --stages 4")
      ->type_name("S")
      ->check(WholeNumber(1, kMaxLayers))
      ->capture_default_str()
      ->each([&layout](const std::string&) { layout.stages_were_given = true; });
  command
      .add_option("--in-flight", layout.in_flight,
                  "Most subnets under way at once. Example: --in-flight 8")
      ->type_name("N")
      ->check(WholeNumber(1, kMaxSubnets))
      ->capture_default_str();
  command
      .add_option("--partition", layout.partition,
                  "Which positions (stem, blocks, head) a stage runs: equal numbers, balanced by "
                  "cost for each subnet, or how many of them each stage. Example: --partition "
                  "6,6,5")
      ->type_name("PARTITION")
      ->capture_default_str();
  command
      .add_option("--costs", layout.costs,
                  "Balances by this cost file of \"verbatim profile\" instead of by counted "
                  "operations. Example: --costs costs.json")
      ->type_name("FILE")
      ->check(NamedPath());
  AddDeviceMemoryOption(command, layout.device_memory);
  AddRecomputeOption(command, layout.recompute);
}

CLI::Option* AddDeviceMemoryOption(CLI::App& command, std::optional<std::int64_t>& bytes) {
  return command
      .add_option("--device-memory", bytes,
                  "What each stage may hold of layers (parameters, buffers, optimizer state); the "
                  "others stay in host memory until they are needed. Changes no bit. Example: "
                  "--device-memory 512MiB")
      ->type_name("BYTES")
      ->transform(ByteCount(1));
}

CLI::Option* AddRecomputeOption(CLI::App& command, std::string& recompute) {
  return command
      .add_option("--recompute", recompute,
                  "Blocks whose activations the backward pass computes again instead of keeping "
                  "them: none, all (each keeps its input alone) or ranges of blocks (each range "
                  "keeps its input). Changes memory and time, no bit. Example: --recompute "
                  "1-12,13-24")
      ->type_name("none|all|RANGES")
      ->capture_default_str();
}

}  // namespace verbatim
