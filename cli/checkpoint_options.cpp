#include "cli/checkpoint_options.h"

#include "cli/commands.h"
#include "supernet/spec_limits.h"

namespace verbatim {
namespace {

constexpr std::int64_t kKeepMax = 1'000'000;

}  // namespace

void AddCheckpointOptions(CLI::App& command, CheckpointOptions& options) {
  const auto note = [&options](const std::string&) { options.were_given = true; };
  command
      .add_option("--checkpoint-every", options.every,
                  "Takes a checkpoint after every N subnets, and one at the end; 0: only at the "
                  "end. Example: --checkpoint-every 200")
      ->type_name("N")
      ->check(WholeNumber(0, kMaxSubnets))
      ->capture_default_str()
      ->each(note);
  command
      .add_option("--keep-checkpoints", options.keep,
                  "How many checkpoints stay, the newest; 0: none are taken. Example: "
                  "--keep-checkpoints 5")
      ->type_name("M")
      ->check(WholeNumber(0, kKeepMax))
      ->capture_default_str()
      ->each(note);
}

Result<bool> WantsCheckpoints(const CheckpointOptions& options, const std::string& policy) {
  if (options.keep == 0) return false;
  if (policy != "asynchronous") return true;
  if (!options.were_given) return false;
  return UsageError("--policy asynchronous ignores causality, so there is no checkpoint of it",
                    "Leave --checkpoint-every and --keep-checkpoints out.");
}

}  // namespace verbatim
