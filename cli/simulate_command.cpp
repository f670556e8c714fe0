#include <fmt/format.h>

#include <charconv>
#include <memory>

#include "cli/byte_count.h"
#include "cli/commands.h"
#include "cli/data_option.h"
#include "cli/layout_options.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "cli/simulation_study.h"
#include "cli/simulation_views.h"
#include "schedule/layer_cache.h"
#include "schedule/policy.h"
#include "supernet/spec_limits.h"

namespace verbatim {
namespace {

constexpr const char* kFooter =
    "Runs a spec's stream under a virtual clock, with the scheduler of real runs: how much stages\n"
    "and micro-batches gain, how long stages are idle, and what they hold. Nothing is trained.\n"
    "\n"
    "Examples:\n"
    "  verbatim simulate digits.json --stages 8\n"
    "  verbatim simulate digits.json --sweep stages=2,4,8 --sweep policy=causal,gpipe,pipedream\n"
    "  verbatim simulate digits.json --costs costs.json --bandwidth 25 --latency 10\n"
    "  verbatim simulate digits.json --device-memory 1MiB --host-bandwidth 12\n"
    "  verbatim simulate digits.json --stages 4 --trace digits.trace.json\n"
    "  verbatim simulate digits.json --stages 4 --sweep 'recompute=none;1-6,7-12;all'\n"
    "  verbatim simulate digits.json --sweep microbatches=1,2,4,8 --format html -o digits.html";

struct SimulateOptions {
  SimulationRequest request;
  std::string format = "text";
  std::filesystem::path output;
  std::filesystem::path trace;
  bool quiet = false;
};

constexpr double kMostNumber = 1e15;
constexpr std::int64_t kMostLookAhead = 2048;

CLI::Validator Number(double least, const char* what) {
  const auto problem = [least, what](const std::string& text) {
    double value = 0.0;
    const char* const end = text.data() + text.size();
    const auto [last, error] = std::from_chars(text.data(), end, value);
    const bool is_number =
        error == std::errc{} && last == end && value >= least && value <= kMostNumber;
    return is_number
               ? std::string()
               : fmt::format("'{}' is no {} from {:g} to {:g}", text, what, least, kMostNumber);
  };
  return CLI::Validator(problem, "");
}

/// "12" or "100-139".
CLI::Validator Window(SimulationRequest& request) {
  const auto problem = [&request](const std::string& text) {
    const std::size_t dash = text.find('-');
    const bool is_range = dash != std::string::npos;
    const std::string first = is_range ? text.substr(0, dash) : "0";
    const std::string last = is_range ? text.substr(dash + 1) : text;
    const CLI::Validator whole = WholeNumber(0, kMaxSubnets);
    const bool are_whole = whole(first).empty() && whole(last).empty();
    if (!are_whole || std::stoll(last) < std::stoll(first)) {
      return fmt::format("'{}' is neither a number of subnets nor a range such as 100-139", text);
    }
    request.timeline_begin = std::stoll(first);
    request.timeline_end = std::stoll(last) + (is_range ? 1 : 0);
    return std::string();
  };
  return CLI::Validator(problem, "");
}

std::string Render(const std::string& format, const SimulationStudy& study) {
  if (format == "json") return StudyJson(study);
  return format == "html" ? StudyHtml(study) : StudyText(study);
}

Result<int> Simulate(const SimulateOptions& options, bool no_color) {
  const OutputOption output{"--output", options.output};
  const OutputOption trace{"--trace", options.trace};
  RETURN_IF_ERROR(
      RefuseInputs({output, trace}, {options.request.spec, CostFileOf(options.request)}));
  RETURN_IF_ERROR(CheckOutputs({output, trace}, {}));
  if (!options.trace.empty() && !options.request.sweeps.empty()) {
    return UsageError("--trace is of one run, and --sweep makes several",
                      "Leave out --sweep, or use --format html.");
  }
  std::optional<ProgressBar> bar;
  const auto progress = [&](std::int64_t done, std::int64_t total) {
    if (!bar) bar.emplace("simulating", total, options.quiet, no_color);
    bar->Update(done);
  };
  ASSIGN_OR_RETURN(const SimulationStudy study, Study(options.request, progress));
  if (bar) bar->Finish();
  if (!options.trace.empty()) {
    RETURN_IF_ERROR(
        WriteOutput(trace, [&](const TextSink& write) { return WriteStudyTrace(study, write); }));
  }
  RETURN_IF_ERROR(WriteResult(Render(options.format, study), output));
  return 0;
}

std::vector<std::string> PolicyNames() {
  std::vector<std::string> names;
  for (const PolicyKind& kind : PolicyKinds()) names.emplace_back(kind.name);
  return names;
}

void AddSettingOptions(CLI::App& command, SimulationSetting& setting) {
  command.add_option("--stages", setting.stages, "Pipeline stages. Example: --stages 8")
      ->type_name("S")
      ->check(WholeNumber(1, kMaxLayers))
      ->capture_default_str();
  command
      .add_option("--policy", setting.policy,
                  "Schedule: causal, sequential, gpipe, 1f1b, pipedream or asynchronous. Example: "
                  "--policy 1f1b")
      ->type_name("POLICY")
      ->check(CLI::IsMember(PolicyNames()))
      ->capture_default_str();
  command
      .add_option("--partition", setting.partition,
                  "Positions by stage: equal, balanced (for each subnet, by the costs) or sizes. "
                  "Example: --partition 6,6,5")
      ->type_name("PARTITION")
      ->capture_default_str();
  command
      .add_option("--in-flight", setting.in_flight,
                  "Most subnets under way at once. Example: --in-flight 8")
      ->type_name("N")
      ->check(WholeNumber(1, kMaxSubnets))
      ->capture_default_str();
  AddRecomputeOption(command, setting.recompute);
  command
      .add_option("--microbatches", setting.microbatches,
                  "Micro-batches of a batch, instead of the spec's. Example: --microbatches 8")
      ->type_name("M")
      ->check(WholeNumber(1, kMaxMicrobatches));
}

void AddCostOptions(CLI::App& command, SimulationRequest& request) {
  command
      .add_option("--costs", request.costs,
                  "What layers cost: equal, analytic (counted from shapes) or a file of verbatim "
                  "profile. Example: --costs costs.json")
      ->type_name("COSTS")
      ->check(NamedPath())
      ->capture_default_str();
  command
      .add_option("--unit-time", request.unit_time,
                  "Microseconds that one unit takes: of equal costs a block's forward (1000), of "
                  "analytic ones an operation (1e-6). Example: --unit-time 2e-7")
      ->type_name("US")
      ->check(Number(1e-12, "number of microseconds"));
  command
      .add_option("--bandwidth", request.bandwidth,
                  "Between two stages, in 10^9 bytes a second; without it, transfers take no time. "
                  "Example: --bandwidth 25")
      ->type_name("GB/S")
      ->check(Number(1e-9, "number of 10^9 bytes a second"));
  command
      .add_option("--latency", request.latency,
                  "Microseconds before a transfer arrives. Example: --latency 10")
      ->type_name("US")
      ->check(Number(0, "number of microseconds"));
}

void AddMemoryOptions(CLI::App& command, SimulationRequest& request) {
  command
      .add_option("--device-memory", request.setting.device_memory,
                  "What each stage may hold of layers; without it, all that it needs. Example: "
                  "--device-memory 64MiB")
      ->type_name("BYTES")
      ->transform(ByteCount(1));
  command
      .add_option("--cache", request.setting.cache,
                  "With --device-memory: lookahead loads ahead of need and gives up what is needed "
                  "last; on-demand loads once needed; lru does, and gives up what was used least "
                  "recently. Example: --cache lru")
      ->type_name("CACHE")
      ->check(CLI::IsMember(CachePolicyNames()))
      ->capture_default_str();
  command
      .add_option(
          "--host-bandwidth", request.host_bandwidth,
          "With --device-memory: between host memory and a stage, each way, in 10^9 bytes a "
          "second; without it, copies take no time. Example: --host-bandwidth 12")
      ->type_name("GB/S")
      ->check(Number(1e-9, "number of 10^9 bytes a second"));
  command
      .add_option("--look-ahead", request.look_ahead,
                  "With --device-memory: subnets that the cache knows beyond those under way. "
                  "Example: --look-ahead 128")
      ->type_name("N")
      ->check(WholeNumber(0, kMostLookAhead))
      ->capture_default_str();
}

void AddStudyOptions(CLI::App& command, SimulateOptions& options) {
  SimulationRequest& request = options.request;
  command
      .add_option("--subnets", request.subnets,
                  "Simulates that many subnets instead of training.subnets. Example: --subnets 600")
      ->type_name("N")
      ->check(WholeNumber(1, kMaxSubnets));
  command
      .add_option("--sweep", request.sweeps,
                  "One run for each value of stages, microbatches, in_flight, policy, cache, "
                  "device_memory, partition or recompute (of the last two separated by ;); given "
                  "twice, for each pair. "
                  "Example: --sweep stages=4,8,16")
      ->type_name("KEY=VALUES")
      ->allow_extra_args(false);
  command
      .add_option_function<std::string>(
          "--timeline", [](const std::string&) {},
          "Subnets that a page or a trace shows: how many, or which. Example: --timeline 100-139")
      ->type_name("N|FIRST-LAST")
      ->check(Window(request))
      ->default_str("12");
}

void AddOutputOptions(CLI::App& command, SimulateOptions& options) {
  command
      .add_option("--format", options.format,
                  "text for people, json for machines, html for a page with charts. Example: "
                  "--format html")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json", "html"}))
      ->capture_default_str();
  command
      .add_option("-o,--output", options.output,
                  "Writes the report to a file, replacing it. Example: -o simulation.html")
      ->type_name("FILE")
      ->check(NamedPath());
  command
      .add_option("--trace", options.trace,
                  "Writes what the stages do as a trace for ui.perfetto.dev. Example: --trace "
                  "simulation.trace.json")
      ->type_name("FILE")
      ->check(NamedPath());
  command.add_flag("-q,--quiet", options.quiet, "No progress. Example: --quiet");
}

}  // namespace

void AddSimulateCommand(CLI::App& app, Invocation& invocation) {
  auto options = std::make_shared<SimulateOptions>();
  CLI::App* command =
      app.add_subcommand("simulate", "Says how fast a schedule would be, and what it would hold");
  command->footer(kFooter);
  command->add_option("spec", options->request.spec, "The spec to simulate. Example: digits.json")
      ->required()
      ->type_name("SPEC");
  AddSettingOptions(*command, options->request.setting);
  AddCostOptions(*command, options->request);
  AddMemoryOptions(*command, options->request);
  AddStudyOptions(*command, *options);
  AddDataOption(*command, options->request.data);
  AddOutputOptions(*command, *options);
  command->callback([options, &invocation] {
    invocation.action = [options, &invocation] { return Simulate(*options, invocation.no_color); };
  });
}

}  // namespace verbatim
