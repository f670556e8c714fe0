#include "cli/layout_options.h"

#include "cli/commands.h"
#include "supernet/spec_limits.h"

namespace verbatim {

void AddLayoutOptions(CLI::App& command, std::int64_t& stages, std::int64_t& in_flight) {
  command
      .add_option("--stages", stages,
                  "Pipeline stages: workers that each run a range of blocks. Example: --stages 4")
      ->type_name("S")
      ->check(WholeNumber(1, kMaxLayers))
      ->capture_default_str();
  command
      .add_option("--in-flight", in_flight,
                  "Most subnets under way at once. Example: --in-flight 8")
      ->type_name("N")
      ->check(WholeNumber(1, kMaxSubnets))
      ->capture_default_str();
}

}  // namespace verbatim
