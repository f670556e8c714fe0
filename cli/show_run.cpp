#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/json_text.h"
#include "cli/show_views.h"
#include "recorder/content_digest.h"
#include "recorder/step_spec.h"
#include "supernet/spec.h"
#include "verify/report.h"
#include "verify/run_words.h"
#include "verify/text.h"

namespace verbatim {
namespace {

struct Losses {
  std::optional<std::uint32_t> first;
  std::optional<std::uint32_t> last;
  double sum_of_last_tenth = 0.0;
  std::int64_t in_last_tenth = 0;

  double MeanOfLastTenth() const { return sum_of_last_tenth / static_cast<double>(in_last_tenth); }
};

struct Accuracies {
  std::int64_t count = 0;
  double mean = 0.0;
  double min = 0.0;
  double max = 0.0;
};

struct RunSummary {
  std::string record;
  RunInfo run;
  std::string spec_name;
  std::optional<StepSpec> steps;  ///< of a step run
  std::vector<EnvironmentRow> environment;
  std::int64_t layers = 0;
  std::int64_t versioned_layers = 0;
  std::int64_t subnets = 0;
  std::int64_t accesses = 0;
  Losses losses;
  Accuracies accuracies;
  std::vector<ResumptionRow> resumptions;
  std::vector<std::int64_t> cuts;  ///< of the checkpoints
  Head head;
  Hash256 content;
};

Result<Losses> ReadLosses(const RecordReader& reader, std::int64_t subnets) {
  Losses losses;
  const std::int64_t tenth = (subnets + 9) / 10;
  std::int64_t row = 0;
  RETURN_IF_ERROR(reader.ForEachSubnet({false, false, false}, [&](const SubnetRow& subnet) {
    if (!losses.first) losses.first = subnet.loss_bits;
    losses.last = subnet.loss_bits;
    if (row++ >= subnets - tenth) {
      losses.sum_of_last_tenth += LossFromBits(subnet.loss_bits);
      ++losses.in_last_tenth;
    }
    return true;
  }));
  return losses;
}

Accuracies Summarize(const std::vector<EvaluationRow>& evaluations) {
  Accuracies accuracies;
  accuracies.min = std::numeric_limits<double>::infinity();
  for (const EvaluationRow& row : evaluations) {
    if (row.total < 1) continue;
    const double accuracy = static_cast<double>(row.correct) / static_cast<double>(row.total);
    ++accuracies.count;
    accuracies.mean += accuracy;
    accuracies.min = std::min(accuracies.min, accuracy);
    accuracies.max = std::max(accuracies.max, accuracy);
  }
  if (accuracies.count > 0) accuracies.mean /= static_cast<double>(accuracies.count);
  return accuracies;
}

Status ReadSpec(RunSummary& summary) {
  if (summary.run.kind == RunKind::kSteps) {
    ASSIGN_OR_RETURN(summary.steps, ParseStepSpec(summary.run.spec_json, "the recorded spec"));
    summary.spec_name = summary.steps->name;
  } else {
    ASSIGN_OR_RETURN(const Spec spec, ParseSpec(summary.run.spec_json, "the recorded spec"));
    summary.spec_name = spec.name;
  }
  return {};
}

Result<RunSummary> ReadSummary(const RecordReader& reader, const std::string& record) {
  RunSummary summary;
  summary.record = record;
  ASSIGN_OR_RETURN(summary.run, reader.Run());
  RETURN_IF_ERROR(ReadSpec(summary));
  ASSIGN_OR_RETURN(summary.environment, reader.Environment());
  ASSIGN_OR_RETURN(const auto layers, reader.Layers());
  summary.layers = std::ssize(layers);
  summary.versioned_layers = std::count_if(layers.begin(), layers.end(),
                                           [](const LayerRow& row) { return row.versioned; });
  ASSIGN_OR_RETURN(summary.subnets, reader.SubnetCount());
  ASSIGN_OR_RETURN(summary.accesses, reader.AccessCount());
  ASSIGN_OR_RETURN(summary.losses, ReadLosses(reader, summary.subnets));
  ASSIGN_OR_RETURN(const auto evaluations, reader.Evaluations());
  summary.accuracies = Summarize(evaluations);
  ASSIGN_OR_RETURN(summary.resumptions, reader.Resumptions());
  ASSIGN_OR_RETURN(const auto checkpoints, reader.Checkpoints());
  for (const CheckpointRow& row : checkpoints) summary.cuts.push_back(row.cut);
  ASSIGN_OR_RETURN(summary.head, reader.HeadNow());
  ASSIGN_OR_RETURN(summary.content, ContentDigest(reader));
  return summary;
}

std::string StatusText(const RunSummary& summary) {
  const std::string incomplete = IncompleteText(summary.run, summary.subnets);
  return incomplete.empty() ? ToString(summary.run.status) : incomplete;
}

std::string LossesText(const Losses& losses) {
  if (!losses.first) return "none yet";
  if (losses.first == kNoLoss && losses.last == kNoLoss) return "not recorded";
  return fmt::format(
      "first {}, last {}, mean of the last 10 % {}", FormatNumber(LossFromBits(*losses.first), 6),
      FormatNumber(LossFromBits(*losses.last), 6), FormatNumber(losses.MeanOfLastTenth(), 6));
}

std::string AccuracyText(const Accuracies& accuracies) {
  if (accuracies.count == 0) return "not evaluated";
  return fmt::format("mean {:.2f} %, min {:.2f} %, max {:.2f} % of {}", 100 * accuracies.mean,
                     100 * accuracies.min, 100 * accuracies.max,
                     FormatCount(accuracies.count, "subnet", "subnets"));
}

/// "rank 0 of 2, one of 10 steps recorded, seed 7".
std::string StepsText(const StepSpec& spec) {
  std::string text = fmt::format("rank {} of {}, ", spec.rank, spec.world_size);
  text += spec.every == 1 ? std::string("every step recorded")
                          : fmt::format("one of {} steps recorded", spec.every);
  return text + (spec.seed ? fmt::format(", seed {}", *spec.seed) : "");
}

std::string SettingsText(const Settings& settings) {
  std::string text;
  for (const auto& [name, value] : settings) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  }
  return text;
}

std::string LayoutText(const RunInfo& run) {
  return fmt::format("{} on {}, policy {}, partition {}, at most {} in flight",
                     FormatCount(run.stages, "stage", "stages"), run.device, run.policy,
                     run.partition, FormatCount(run.in_flight, "subnet", "subnets"));
}

std::string ResumptionText(const ResumptionRow& row) {
  return fmt::format("{} from subnet {}, {} on {}, policy {}, partition {}", row.started_utc,
                     row.cut, FormatCount(row.stages, "stage", "stages"), row.device, row.policy,
                     row.partition);
}

std::string CutsText(const std::vector<std::int64_t>& cuts) {
  if (cuts.empty()) return "";
  return fmt::format("after {} subnets", fmt::join(cuts, ", "));
}

std::string CountsText(const RunSummary& summary) {
  const bool is_known = !summary.steps || summary.run.subnets_planned > 0;
  const std::string of_planned =
      is_known ? " of " + FormatCount(summary.run.subnets_planned) : std::string();
  return fmt::format("{}{}, {}", FormatCount(summary.subnets), of_planned,
                     FormatCount(summary.accesses, "access", "accesses"));
}

std::string RenderText(const RunSummary& summary) {
  std::string text = fmt::format("Record {}: {}\n", summary.record, summary.spec_name);
  const auto line = [&text](std::string_view label, const std::string& value) {
    if (!value.empty()) text += fmt::format("  {:<9} {}\n", label, value);
  };
  line("status", StatusText(summary));
  line("why", summary.run.status_detail);
  line("started", summary.run.started_utc);
  line("ended", summary.run.ended_utc);
  line("command", summary.run.command_line);
  line("layout", summary.steps ? StepsText(*summary.steps) : LayoutText(summary.run));
  if (summary.steps) line("settings", SettingsText(summary.steps->settings));
  for (const ResumptionRow& row : summary.resumptions) line("resumed", ResumptionText(row));
  line("level", summary.run.record_level);
  line(WordsOf(summary.run.kind).many, CountsText(summary));
  line("layers", fmt::format("{}, {} versioned", FormatCount(summary.layers),
                             FormatCount(summary.versioned_layers)));
  line("loss", LossesText(summary.losses));
  if (!summary.steps) {
    line("accuracy", AccuracyText(summary.accuracies));
    line("data", ToHex(summary.run.dataset_digest));
  }
  line("content", ToHex(summary.content));
  line("root", fmt::format("{} over {}", ToHex(summary.head.content_root),
                           CountRows(summary.head.subnets, summary.run.kind)));
  line("saved", CutsText(summary.cuts));
  line("made by", fmt::format("verbatim {}", summary.run.tool_version));
  text += "Environment\n";
  for (const EnvironmentRow& row : summary.environment) {
    text += fmt::format("  {}: {}\n", row.key, row.value);
  }
  return text;
}

Json FiniteOrNull(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json LossesJson(const Losses& losses) {
  if (!losses.first) return nullptr;
  Json json;
  json["first"] = LossJson(*losses.first);
  json["last"] = LossJson(*losses.last);
  json["mean_of_last_tenth"] = FiniteOrNull(losses.MeanOfLastTenth());
  return json;
}

Json ResumptionsJson(const std::vector<ResumptionRow>& resumptions) {
  Json json = Json::array();
  for (const ResumptionRow& row : resumptions) {
    json.push_back({{"started_utc", row.started_utc},
                    {"subnet", row.cut},
                    {"command_line", row.command_line},
                    {"stages", row.stages},
                    {"in_flight", row.in_flight},
                    {"partition", row.partition},
                    {"device", row.device},
                    {"policy", row.policy},
                    {"tool_version", row.tool_version}});
  }
  return json;
}

Json AccuraciesJson(const Accuracies& accuracies) {
  if (accuracies.count == 0) return nullptr;
  Json json;
  json["subnets"] = accuracies.count;
  json["mean"] = accuracies.mean;
  json["min"] = accuracies.min;
  json["max"] = accuracies.max;
  return json;
}

Json StepsJson(const StepSpec& spec) {
  Json json;
  json["seed"] = spec.seed ? Json(*spec.seed) : Json(nullptr);
  json["every"] = spec.every;
  json["rank"] = spec.rank;
  json["world_size"] = spec.world_size;
  json["optimizer_state"] = spec.optimizer_state;
  json["gradients"] = spec.gradients;
  json["settings"] = Json::parse(SettingsToJson(spec.settings), nullptr, false);
  return json;
}

std::string RenderJson(const RunSummary& summary) {
  const RunInfo& run = summary.run;
  Json json;
  json["record"] = summary.record;
  json["name"] = summary.spec_name;
  if (summary.steps) json["steps"] = StepsJson(*summary.steps);
  json["status"] = ToString(run.status);
  json["status_detail"] = run.status_detail;
  json["started_utc"] = run.started_utc;
  json["ended_utc"] = run.ended_utc.empty() ? Json(nullptr) : Json(run.ended_utc);
  json["command_line"] = run.command_line;
  json["stages"] = run.stages;
  json["in_flight"] = run.in_flight;
  json["partition"] = run.partition;
  json["device"] = run.device;
  json["policy"] = run.policy;
  json["record_level"] = run.record_level;
  json["subnets_planned"] = run.subnets_planned;
  json["subnets"] = summary.subnets;
  json["accesses"] = summary.accesses;
  json["layers"] = summary.layers;
  json["versioned_layers"] = summary.versioned_layers;
  json["loss"] = LossesJson(summary.losses);
  json["accuracy"] = AccuraciesJson(summary.accuracies);
  json["dataset_digest"] = ToHex(run.dataset_digest);
  json["content_digest"] = ToHex(summary.content);
  json["content_root"] = ToHex(summary.head.content_root);
  json["subnets_under_root"] = summary.head.subnets;
  json["resumptions"] = ResumptionsJson(summary.resumptions);
  json["checkpoints"] = summary.cuts;
  json["tool_version"] = run.tool_version;
  json["environment"] = Json::object();
  for (const EnvironmentRow& row : summary.environment) json["environment"][row.key] = row.value;
  return ToJsonText(json);
}

}  // namespace

Result<std::string> ShowRun(const RecordReader& reader, const std::string& record,
                            ShowFormat format) {
  ASSIGN_OR_RETURN(const RunSummary summary, ReadSummary(reader, record));
  return format == ShowFormat::kJson ? RenderJson(summary) : RenderText(summary);
}

}  // namespace verbatim
