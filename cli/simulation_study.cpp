#include "cli/simulation_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/spec_space.h"
#include "schedule/partition.h"
#include "schedule/policy.h"
#include "schedule/recompute.h"
#include "schedule/simulate/device_cache.h"
#include "schedule/simulate/simulator.h"
#include "supernet/spec_names.h"
#include "supernet/stream.h"
#include "verify/text.h"

namespace verbatim {
namespace {

/// What does not change from run to run.
struct Subject {
  Spec spec;
  std::filesystem::path folder;
  SampleShape shape;
};

Result<CostTable> CostsOf(const std::string& costs, const SearchSpace& space, const Spec& spec) {
  if (costs == "equal") return EqualCosts(space, spec);
  if (costs == "analytic") return AnalyticCosts(space, spec);
  return ReadCosts(costs, space, spec);
}

/// A block's forward is drawn as a millisecond, 10^12 operations as a second, where nothing is
/// said.
Result<double> SecondsPerUnit(CostSource source, const std::optional<double>& unit_time) {
  if (source == CostSource::kMeasured) {
    if (!unit_time) return 1.0;
    return UsageError("--unit-time: these costs are in seconds already", "leave --unit-time out");
  }
  if (unit_time) return *unit_time * 1e-6;
  return source == CostSource::kEqual ? 1e-3 : 1e-12;
}

std::optional<DeviceMemoryOptions> DeviceMemoryOf(const SimulationRequest& request,
                                                  const SimulationSetting& setting,
                                                  double seconds_per_unit) {
  if (setting.device_memory == 0) return std::nullopt;
  DeviceMemoryOptions options{.budget_bytes = setting.device_memory,
                              .policy = *ParseCachePolicy(setting.cache),
                              .window = request.look_ahead};
  if (request.host_bandwidth > 0) {
    options.time_per_byte = 1 / (request.host_bandwidth * 1e9) / seconds_per_unit;
  }
  return options;
}

SimulationOptions OptionsOf(const SimulationRequest& request, const Spec& spec,
                            const SimulationSetting& setting, double seconds_per_unit) {
  const TrainingSpec& training = spec.training;
  const auto rows = [&](std::int64_t m) {
    return static_cast<double>(MicrobatchRows(training.batch, training.microbatches, m).size());
  };
  SimulationOptions options;
  options.subnets = training.subnets;
  options.microbatches = static_cast<std::int32_t>(training.microbatches);
  options.last_microbatch = rows(training.microbatches - 1) / rows(0);
  options.in_flight_max = setting.in_flight;
  options.latency = request.latency * 1e-6 / seconds_per_unit;
  if (request.bandwidth > 0) {
    options.time_per_byte = 1 / (request.bandwidth * 1e9) / seconds_per_unit;
  }
  options.device_memory = DeviceMemoryOf(request, setting, seconds_per_unit);
  options.timeline_begin = request.timeline_begin;
  options.timeline_end = request.timeline_end;
  return options;
}

Status CheckMicrobatches(std::int64_t batch, std::int64_t microbatches) {
  if (MicrobatchRows(batch, microbatches, microbatches - 1).size() > 0) return {};
  return UsageError(fmt::format("--microbatches {}: of a batch of {} rows, cut into parts of {}, "
                                "the last micro-batch would be empty",
                                microbatches, batch, MicrobatchRows(batch, microbatches, 0).size()),
                    "use fewer, or a divisor of the batch");
}

bool IsCausal(std::string_view policy) {
  for (const PolicyKind& kind : PolicyKinds()) {
    if (kind.name == policy) return kind.is_causal;
  }
  return false;
}

Status CheckDeviceMemory(const SimulationSetting& setting, const SearchSpace& space,
                         const CostTable& costs, const Partition& partition, const Sampler& sampler,
                         std::int64_t subnets) {
  if (!IsCausal(setting.policy)) {
    return UsageError(
        fmt::format("--device-memory: policy {} ignores causality, and layers are loaded in its "
                    "order",
                    setting.policy),
        "use --policy causal, sequential, gpipe or 1f1b");
  }
  LeastDeviceMemory least(space, LayerBytesOf(costs), partition.stages());
  for (std::int64_t seq = 0; seq < subnets; ++seq) {
    const Choices choices = sampler.Draw(seq);
    least.Add(choices, partition.Ranges(choices));
  }
  if (setting.device_memory >= least.bytes()) return {};
  return UsageError(
      fmt::format("--device-memory {}: too little for these subnets on {}", setting.device_memory,
                  FormatCount(setting.stages, "stage", "stages")),
      fmt::format("use at least {}, or more stages", least.bytes()));
}

/// Options that only a device memory gives a meaning.
Status CheckCacheOptions(const SimulationRequest& request,
                         const std::vector<SimulationSetting>& settings) {
  const SimulationSetting standard;
  bool is_bounded = false;
  bool has_cache = request.host_bandwidth > 0;
  for (const SimulationSetting& setting : settings) {
    is_bounded = is_bounded || setting.device_memory > 0;
    has_cache = has_cache || setting.cache != standard.cache;
  }
  if (is_bounded || !has_cache) return {};
  return UsageError("--cache and --host-bandwidth are of stages that cannot hold all layers",
                    "say what they can hold: --device-memory 64MiB");
}

/// One setting: its run, and what it says of the study.
Result<SimulationRun> RunSetting(const SimulationRequest& request, const Subject& subject,
                                 const SimulationSetting& setting, SimulationStudy& study,
                                 const std::function<void(std::int64_t)>& finished) {
  Spec spec = subject.spec;
  if (setting.microbatches > 0) {
    RETURN_IF_ERROR(CheckMicrobatches(spec.training.batch, setting.microbatches));
    spec.training.microbatches = setting.microbatches;
  }
  ASSIGN_OR_RETURN(const SearchSpace space,
                   SearchSpace::Build(spec, subject.shape.input, subject.shape.classes));
  ASSIGN_OR_RETURN(const CostTable costs, CostsOf(request.costs, space, spec));
  ASSIGN_OR_RETURN(study.seconds_per_unit, SecondsPerUnit(costs.source, request.unit_time));
  study.costs = costs.source;
  study.blocks = space.blocks();
  study.layers = std::ssize(space.layers());
  ASSIGN_OR_RETURN(const auto sampler, MakeSampler(spec, space, subject.folder));
  ASSIGN_OR_RETURN(const auto policy, MakePolicy(setting.policy));
  ASSIGN_OR_RETURN(const auto recompute, RecomputePlan::Make(setting.recompute, space));
  ASSIGN_OR_RETURN(
      const auto partition,
      MakePartition(setting.partition, space, recompute.Costs(costs, space), setting.stages));
  SimulationOptions options = OptionsOf(request, spec, setting, study.seconds_per_unit);
  options.recompute = recompute;
  if (options.device_memory) {
    RETURN_IF_ERROR(
        CheckDeviceMemory(setting, space, costs, *partition, *sampler, options.subnets));
  }
  SimulationRun run{setting, IsCausal(setting.policy), {}};
  run.setting.microbatches = spec.training.microbatches;
  run.report = Simulate(space, costs, *partition, *policy, *sampler, options, finished);
  return run;
}

}  // namespace

bool SimulationStudy::recomputes() const {
  return std::any_of(runs.begin(), runs.end(),
                     [](const SimulationRun& run) { return run.setting.recompute != "none"; });
}

std::filesystem::path CostFileOf(const SimulationRequest& request) {
  const bool is_file = request.costs != "equal" && request.costs != "analytic";
  return is_file ? std::filesystem::path(request.costs) : std::filesystem::path();
}

Result<SimulationStudy> Study(const SimulationRequest& request,
                              const std::function<void(std::int64_t, std::int64_t)>& progress) {
  ASSIGN_OR_RETURN(const auto settings, ExpandSweep(request.setting, request.sweeps));
  RETURN_IF_ERROR(CheckCacheOptions(request, settings));
  Subject subject{.spec = {}, .folder = request.spec.parent_path(), .shape = {}};
  ASSIGN_OR_RETURN(subject.spec, ReadSpec(request.spec));
  if (request.subnets) subject.spec.training.subnets = *request.subnets;
  if (request.timeline_begin >= subject.spec.training.subnets) {
    return UsageError(fmt::format("--timeline: it begins at subnet {}, but there are {}",
                                  request.timeline_begin, subject.spec.training.subnets),
                      "subnets count from 0; --subnets sets how many there are");
  }
  ASSIGN_OR_RETURN(subject.shape, ShapeOfData(subject.spec, request.spec, request.data));
  SimulationStudy study{.spec = request.spec.string(),
                        .name = subject.spec.name,
                        .sampler = std::string(NameOf(kSamplerNames, subject.spec.sampler.kind)),
                        .subnets = subject.spec.training.subnets,
                        .costs_text = request.costs};
  for (const std::string& sweep : request.sweeps) {
    study.swept.push_back(sweep.substr(0, sweep.find('=')));
  }
  const std::int64_t total = study.subnets * std::ssize(settings);
  for (const SimulationSetting& setting : settings) {
    const std::int64_t before = study.subnets * std::ssize(study.runs);
    const auto finished = [&](std::int64_t subnets) {
      if (progress) progress(before + subnets, total);
    };
    ASSIGN_OR_RETURN(SimulationRun run, RunSetting(request, subject, setting, study, finished));
    study.runs.push_back(std::move(run));
  }
  return study;
}

}  // namespace verbatim
