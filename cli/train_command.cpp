#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "cli/checkpoint_options.h"
#include "cli/commands.h"
#include "cli/compute_options.h"
#include "cli/data_option.h"
#include "cli/effective_spec.h"
#include "cli/forward.h"
#include "cli/head_options.h"
#include "cli/layout_options.h"
#include "cli/output_file.h"
#include "cli/rank_options.h"
#include "store/checkpoint_files.h"
#include "store/merkle.h"
#include "supernet/fault.h"
#include "supernet/spec.h"
#include "supernet/spec_limits.h"
#include "supernet/text_file.h"
#include "verify/text.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFooter =
    "Trains the subnets of the spec's stream and records each of them. Whatever the number of\n"
    "stages, the bits are those of training one subnet after another. Ctrl-C stops after the\n"
    "subnets in flight and leaves a sound record. Beside the record, RUN.db.checkpoints holds the\n"
    "newest checkpoints, taken without a pause: verbatim export reads weights out of them.\n"
    "\n"
    "Examples:\n"
    "  verbatim train digits.json -o run.db\n"
    "  verbatim train digits.json -o run.db --stages 4 --in-flight 8\n"
    "  verbatim train digits.json -o run.db --stages 2 --costs costs.json\n"
    "  verbatim train digits.json -o run.db --device cuda --record full --force\n"
    "  verbatim train digits.json -o run.db --head-every 100 --head-file /kept/run.head --sign "
    "run.key\n"
    "  verbatim train digits.json -o run.db --checkpoint-every 200 --keep-checkpoints 5\n"
    "  torchrun --no-python --nproc-per-node 4 verbatim train digits.json -o run.db --stages 8\n"
    "  verbatim train digits.json --record off --subnets 20\n"
    "  verbatim train digits.json -o faulty.db --inject stale-read@12";

/// A folder whose record is gone: its files may be somebody's only copy.
Status CheckNoOldCheckpoints(const TrainRequest& request) {
  const fs::path old = CheckpointFolder(request.output);
  RETURN_IF_ERROR(CheckCheckpointFolder(old));
  if (request.force) return {};
  ASSIGN_OR_RETURN(const std::vector<Hash256> files, ListCheckpointFiles(old));
  if (files.empty()) return {};
  return UsageError(fmt::format("{} is left over from another record", old.string()),
                    "Remove it, name another record with -o, or overwrite it with --force.");
}

Status CheckCheckpoints(const TrainRequest& request) {
  RETURN_IF_ERROR(WantsCheckpoints(request.checkpoints, request.policy));
  if (request.record_level != "off" || !request.checkpoints.were_given) return {};
  return UsageError("checkpoints belong to a record, but --record off makes none",
                    "Leave --checkpoint-every and --keep-checkpoints out.");
}

Status CheckOutput(const TrainRequest& request) {
  const bool off = request.record_level == "off";
  if (off && !request.output.empty()) {
    return UsageError("-o names a record, but --record off makes none", "Leave one of them out.");
  }
  if (off) return {};
  if (request.output.empty()) {
    return UsageError("no record was named",
                      "Name one with -o RUN.db, or train without one: --record off.");
  }
  std::error_code error;
  const std::string path = request.output.string();
  if (fs::is_directory(request.output, error)) {
    return UsageError(fmt::format("-o {} is a folder", path), "Name a file in it.");
  }
  if (fs::exists(request.output, error) && !request.force) {
    return UsageError(fmt::format("{} exists already", path),
                      fmt::format("Name another file with -o, overwrite it with --force, or go on "
                                  "with it: verbatim resume {}",
                                  ShellPath(path)));
  }
  const fs::path folder = request.output.parent_path();
  if (!folder.empty() && !fs::is_directory(folder, error)) {
    return UsageError(fmt::format("-o {}: there is no folder {}", path, folder.string()),
                      "Make the folder first, or name another.");
  }
  return CheckNoOldCheckpoints(request);
}

Status CheckHeads(const TrainRequest& request) {
  if (request.record_level == "off" && !request.heads.file.empty()) {
    return UsageError("--head-file takes heads of the record, but --record off makes none",
                      "Leave one of them out.");
  }
  RETURN_IF_ERROR(RefuseInputs({{"--head-file", request.heads.file}}, {request.spec}));
  return CheckHeadOptions(request.heads, request.output, /*is_new_run=*/true);
}

Status CheckInjection(const TrainRequest& request) {
  if (!request.inject) return {};
  RETURN_IF_ERROR(ParseFault(*request.inject));
  if (request.record_level != "off") return {};
  return UsageError("--inject makes a fault to be found in a record, but --record off makes none",
                    "Leave one of them out.");
}

Status CheckRanks(TrainRequest& request) {
  if (!request.place) return {};
  if (request.inject) return NotOnRanks("--inject makes its fault", "Leave it out.");
  if (request.policy != "causal") {
    return NotOnRanks(fmt::format("--policy {} runs", request.policy), "Use --policy causal.");
  }
  RETURN_IF_ERROR(SettleDevice(request.device, *request.place));
  return SettleStages(*request.place, request.layout);
}

/// What a list of subnets holds; empty where the sampler reads none, or it cannot be read, of which
/// the sampler tells.
std::string ListDigest(const TrainRequest& request, const Spec& spec) {
  const std::string& name = spec.sampler.ListFile();
  if (name.empty()) return "";
  const auto text = ReadTextFile(fs::absolute(request.spec).parent_path() / name, "the list", "");
  return text ? ToHex(Blake2b(*text)) : "";
}

/// What every rank must have been asked for alike.
std::string DescribeTask(const TrainRequest& request, const Spec& spec) {
  const LayoutOptions& layout = request.layout;
  nlohmann::json task{{"command", "train"},
                      {"spec", nlohmann::json::parse(SpecToJson(spec))},
                      {"list", ListDigest(request, spec)},
                      {"device", request.device},
                      {"stages", layout.stages},
                      {"in_flight", layout.in_flight},
                      {"partition", layout.partition},
                      {"costs", layout.costs.has_value()},
                      {"recompute", layout.recompute},
                      {"threads_per_stage", request.threads_per_stage},
                      {"records", request.record_level != "off"},
                      {"stop_on_nan", request.stop_on_nan}};
  // Where the data lies may differ from host to host; that it is the same is checked by its digest.
  task["spec"]["data"].erase("folder");
  return task.dump();
}

/// What a rank other than 0 keeps of its own part; nothing where nothing is recorded.
std::optional<RankPartRequest> PartOf(const TrainRequest& request) {
  if (request.record_level == "off" || request.output.empty()) return std::nullopt;
  return RankPartRequest{
      .record = request.output, .force = request.force, .keep = request.keep_parts};
}

/// A rank other than 0: reads no more than its spec.
Result<int> Work(TrainRequest& request, const Invocation& invocation) {
  RETURN_IF_ERROR(CheckDataFolder(request.data_folder));
  const std::optional<RankPartRequest> part = PartOf(request);
  if (part) RETURN_IF_ERROR(CheckRankPart(*part, request.place->rank.rank));
  ASSIGN_OR_RETURN(const Spec spec, EffectiveSpec(request));
  if (NeedsForward(invocation, spec.numerics)) {
    return tl::unexpected(ForwardToEngine(invocation.argv, spec.numerics));
  }
  RETURN_IF_ERROR(CheckProcessor(spec.numerics, DescribeProcessor()));
  request.place->numerics = spec.numerics;
  request.place->task_json = DescribeTask(request, spec);
  const fs::path folder = fs::absolute(request.spec).parent_path();
  RETURN_IF_ERROR(invocation.engine->Work({*request.place, folder, request.data_folder, part}));
  return 0;
}

Result<int> Train(TrainRequest& request, const Invocation& invocation) {
  RETURN_IF_ERROR(CheckInjection(request));
  RETURN_IF_ERROR(CheckCheckpoints(request));
  RETURN_IF_ERROR(CheckOutput(request));
  RETURN_IF_ERROR(CheckHeads(request));
  RETURN_IF_ERROR(CheckDataFolder(request.data_folder));
  ASSIGN_OR_RETURN(const Spec spec, EffectiveSpec(request));
  if (NeedsForward(invocation, spec.numerics)) {
    return tl::unexpected(ForwardToEngine(invocation.argv, spec.numerics));
  }
  RETURN_IF_ERROR(CheckProcessor(spec.numerics, DescribeProcessor()));
  if (request.place) {
    request.place->numerics = spec.numerics;
    request.place->task_json = DescribeTask(request, spec);
  }
  RETURN_IF_ERROR(invocation.engine->Train(request));
  return 0;
}

Result<int> TrainHere(TrainRequest request, const Invocation& invocation) {
  ASSIGN_OR_RETURN(request.place, FindPlace(request.ranks));
  RETURN_IF_ERROR(CheckRanks(request));
  return OnRanks(request.place, invocation, [&] {
    const bool is_worker = request.place && !request.place->is_first();
    return is_worker ? Work(request, invocation) : Train(request, invocation);
  });
}

void AddExecutionOptions(CLI::App& command, TrainRequest& request) {
  AddLayoutOptions(command, request.layout);
  AddComputeOptions(command, request.device, request.threads_per_stage);
  command
      .add_option(
          "--policy", request.policy,
          "Schedule: causal, sequential (one task at a time), gpipe or 1f1b (one subnet at a "
          "time) or asynchronous (ignores causality; from two stages on its records do not "
          "verify). Example: --policy sequential")
      ->type_name("POLICY")
      ->check(CLI::IsMember({"causal", "sequential", "gpipe", "1f1b", "asynchronous"}))
      ->capture_default_str();
}

void AddRecordOptions(CLI::App& command, TrainRequest& request) {
  command
      .add_option("-o,--output", request.output,
                  "The record to make; needed unless --record off. Example: -o run.db")
      ->type_name("RUN.db")
      ->check(NamedPath());
  command
      .add_option("--record", request.record_level,
                  "What to record: off, losses, weights or full; the spec's level if not given. "
                  "Example: --record full")
      ->type_name("LEVEL")
      ->check(CLI::IsMember({"off", "losses", "weights", "full"}));
  command.add_flag("--force", request.force,
                   "Overwrites an existing record and its checkpoints. Example: -o run.db --force");
  AddCheckpointOptions(command, request.checkpoints);
}

void AddRunOptions(CLI::App& command, TrainRequest& request) {
  command
      .add_option("--subnets", request.subnets,
                  "Trains that many subnets instead of training.subnets. Example: --subnets 20")
      ->type_name("N")
      ->check(WholeNumber(1, kMaxSubnets));
  AddDataOption(command, request.data_folder);
  command.add_flag("--stop-on-nan,!--no-stop-on-nan", request.stop_on_nan,
                   "Stops the run at the first loss that is NaN or infinite (the default), or goes "
                   "on. "
                   "Example: --no-stop-on-nan");
  command
      .add_option("--inject", request.inject,
                  "Makes a fault on purpose, to see that verification finds it: " +
                      fmt::format("{}", fmt::join(FaultNames(), ", ")) +
                      "; at subnet SUBNET, or at one that the seed draws. Example: --inject "
                      "stale-read@12")
      ->type_name("CLASS[@SUBNET]");
  command.add_flag("-q,--quiet", request.quiet,
                   "Shows neither progress nor summary. Example: --quiet");
}

}  // namespace

void AddTrainCommand(CLI::App& app, Invocation& invocation) {
  auto request = std::make_shared<TrainRequest>();
  CLI::App* command = app.add_subcommand("train", "Trains a supernet and records every subnet");
  command->footer(kFooter);
  command->add_option("spec", request->spec, "The spec to train. Example: digits.json")
      ->required()
      ->type_name("SPEC");
  AddRecordOptions(*command, *request);
  AddHeadOptions(*command, request->heads);
  AddExecutionOptions(*command, *request);
  AddRunOptions(*command, *request);
  AddRankOptions(*command, request->ranks);
  AddKeepPartsOption(*command, request->keep_parts);
  command->callback([request, &invocation] {
    request->command_line = invocation.command_line;
    invocation.action = [request, &invocation] { return TrainHere(*request, invocation); };
  });
}

}  // namespace verbatim
