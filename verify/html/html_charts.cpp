#include "verify/html/html_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "verify/html/html_sections.h"
#include "verify/html/html_text.h"
#include "verify/markup.h"
#include "verify/report.h"
#include "verify/run_words.h"
#include "verify/text.h"

namespace verbatim {
namespace {

struct Key {
  const char* css_class;
  const char* text;
};

std::string Legend(const std::vector<Key>& keys) {
  std::string html = "<ul class=\"legend\" aria-label=\"Legend\">";
  for (const Key& key : keys) {
    html += fmt::format("<li><span class=\"swatch {}\" aria-hidden=\"true\"></span>{}</li>",
                        key.css_class, key.text);
  }
  return html + "</ul>\n";
}

std::string Seconds(std::int64_t nanoseconds) {
  return fmt::format("{:.3f} s", static_cast<double>(nanoseconds) / 1e9);
}

std::string Milliseconds(std::int64_t nanoseconds) {
  return fmt::format("{:.1f}", static_cast<double>(nanoseconds) / 1e6);
}

std::string Percent(std::int64_t part, std::int64_t whole) {
  if (whole <= 0) return "–";
  return fmt::format("{:.0f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

bool HasFocus(const Verdict& verdict) {
  return verdict.first_difference && verdict.first_difference->seq;
}

std::string Range(std::int64_t first, std::int64_t last) {
  return first == last ? fmt::format("{}", first) : fmt::format("{}–{}", first, last);
}

const char* EqualityText(Equality equality) {
  switch (equality) {
    case Equality::kNotCompared:
      return "not compared";
    case Equality::kEqual:
      return "equal";
    case Equality::kTainted:
      return "tainted";
    case Equality::kOrigin:
      return "origin";
  }
  return "";
}

std::string LossTable(const LossCurve& curve, RunKind kind) {
  std::string rows;
  for (const LossWindow& window : curve.windows) {
    rows += RowHtml({Range(window.first, window.last), FormatNumber(window.lowest, 6),
                     FormatNumber(window.mean, 6), FormatNumber(window.highest, 6)});
  }
  return TableHtml("Losses of the record", {WordsOf(kind).many, "lowest", "mean", "highest"}, rows);
}

/// Rows that a full window of the mean holds. Steps' numbers may lie apart.
std::int64_t InWindow(const LossCurve& curve, RunKind kind) {
  if (kind == RunKind::kSupernet) {
    return curve.windows.front().last - curve.windows.front().first + 1;
  }
  return (curve.subnets + LossCurve::kWindowsMax - 1) / LossCurve::kWindowsMax;
}

std::string LossCaption(const LossCurve& curve, RunKind kind) {
  std::string caption = fmt::format("Loss of {}", CountRows(curve.subnets, kind));
  if (curve.subnets_per_bucket > 1) {
    caption += fmt::format(", as the lowest and the highest of every {}", curve.subnets_per_bucket);
  }
  if (curve.windows.size() > 1) {
    caption += fmt::format("; the thick line is the mean over every {}",
                           CountRows(InWindow(curve, kind), kind));
  }
  if (curve.not_finite > 0) {
    caption += fmt::format(". {} NaN or infinite, first at {} {}, and not drawn",
                           FormatCount(curve.not_finite, "loss is", "losses are"),
                           WordsOf(kind).one, *curve.first_not_finite);
  }
  return caption + ".";
}

std::string TimelineTable(const ReportData& data) {
  const StageTimeline& timeline = data.timeline;
  std::string rows;
  for (std::size_t stage = 0; stage < timeline.busy.size(); ++stage) {
    const StageBusy& busy = timeline.busy[stage];
    rows += RowHtml({fmt::format("{}", stage), Milliseconds(busy.forward_ns),
                     Milliseconds(busy.backward_ns), Milliseconds(busy.update_ns),
                     Milliseconds(timeline.length_ns() - busy.total_ns()),
                     Percent(busy.total_ns(), timeline.length_ns()),
                     Percent(data.busy[stage].total_ns(), data.run_ns)});
  }
  return TableHtml("Time of the stages in the window, in milliseconds",
                   {"stage", "forward", "backward", "update", "idle", "busy", "busy, whole run"},
                   rows);
}

std::string TimelineCaption(const Verdict& verdict, const StageTimeline& timeline) {
  std::int64_t first = timeline.bars.front().seq;
  std::int64_t last = first;
  for (const TimelineBar& bar : timeline.bars) {
    first = std::min(first, bar.seq);
    last = std::max(last, bar.seq);
  }
  return fmt::format(
      "What each stage did from {} to {} of the run, {}: subnets {}. Gaps are idle time; the "
      "share at the right is how much of the window the stage was busy.",
      Seconds(timeline.begin_ns), Seconds(timeline.end_ns),
      HasFocus(verdict) ? "around the first difference" : "its first part", Range(first, last));
}

std::string LayersTable(const Comparison& comparison, RunKind kind) {
  std::string rows;
  for (const LayerTaint& layer : comparison.layers) {
    rows +=
        RowHtml({CodeHtml(layer.name), FormatCount(layer.first_seq), FormatCount(layer.accesses)});
  }
  return TableHtml("Layers whose versions differ",
                   {"layer", fmt::format("first at {}", WordsOf(kind).one), "accesses that differ"},
                   rows);
}

std::string GraphTable(const Neighbourhood& neighbourhood) {
  std::string rows;
  for (const NeighbourEdge& edge : neighbourhood.edges) {
    std::string layers;
    for (const std::string& layer : edge.layers) layers += (layers.empty() ? "" : ", ") + layer;
    rows += RowHtml({fmt::format("{}", edge.to), fmt::format("{}", edge.from), EscapeXml(layers)});
  }
  std::string nodes;
  for (const NeighbourNode& node : neighbourhood.nodes) {
    nodes += RowHtml(
        {fmt::format("{}", node.seq), fmt::format("{}", node.level), EqualityText(node.equality)});
  }
  return TableHtml("Versions used", {"subnet", "used versions of", "layers"}, rows) +
         TableHtml("Subnets", {"subnet", "level", "compares as"}, nodes);
}

}  // namespace

std::string LossHtml(const Verdict& verdict, const ReportData& data) {
  if (data.losses.points.empty()) return "";
  const RunKind kind = verdict.run.kind;
  std::vector<Key> keys{{"line record", RecordNames(verdict).first}};
  const std::string dashed = fmt::format("{}, dashed", RecordNames(verdict).second);
  if (data.reference_losses) keys.push_back({"line reference", dashed.c_str()});
  return SectionHtml(
      "loss", "Loss",
      FigureHtml("loss", fmt::format("Line chart of the loss by {}", WordsOf(kind).one),
                 Legend(keys), LossCaption(data.losses, kind), LossTable(data.losses, kind)));
}

std::string TimelineHtml(const Verdict& verdict, const ReportData& data) {
  if (data.timeline.bars.empty()) return "";
  return SectionHtml("timeline", "Stages",
                     FigureHtml("timeline", "Timeline of the tasks of each stage",
                                Legend({{"forward", "forward"},
                                        {"backward", "backward, hatched"},
                                        {"update", "update"},
                                        {"idle", "idle"}}),
                                TimelineCaption(verdict, data.timeline), TimelineTable(data)));
}

std::string EqualityMapHtml(const Verdict& verdict, const ReportData& data) {
  if (!verdict.comparison || verdict.comparison->map.cells.empty()) return OriginsHtml(verdict);
  const Comparison& comparison = *verdict.comparison;
  const RunKind kind = verdict.run.kind;
  const std::string caption = fmt::format(
      "Every access that was compared: {} by position. Each column stands for {} and shows the "
      "strongest mark among them.",
      CountRows(comparison.subnets_compared, kind),
      CountRows(comparison.map.subnets_per_column, kind));
  const auto positions = comparison.map.names.empty() ? std::ssize(PositionNames(data.layers))
                                                      : std::ssize(comparison.map.names);
  const std::string figure = FigureHtml(
      "map", fmt::format("Map of equality: {} by {} positions", WordsOf(kind).many, positions),
      Legend({{"equal", "equal"},
              {"tainted", "tainted, hatched"},
              {"origin", "origin ×"},
              {"not-compared", "nothing to compare"}}),
      caption, LayersTable(comparison, kind));
  return SectionHtml("map", "Equality", figure + OriginsHtml(verdict));
}

std::string NeighbourhoodHtml(const Verdict& verdict, const ReportData& data) {
  if (!data.neighbourhood || data.neighbourhood->nodes.empty()) return "";
  const Neighbourhood& neighbourhood = *data.neighbourhood;
  const std::string caption = fmt::format(
      "Subnet {}{}, the subnets whose versions it read or updated, and those that used its own, "
      "two levels each way. Time runs down; a line joins a version's writer to its user.{}",
      neighbourhood.seq, HasFocus(verdict) ? ", the first that differs" : "",
      neighbourhood.complete
          ? ""
          : fmt::format(" At each level the {} nearest are shown.", Neighbourhood::kShownPerLevel));
  return SectionHtml("neighbourhood", "Causal neighbourhood",
                     FigureHtml("graph", "Graph of versions written and used",
                                Legend({{"node equal", "equal"},
                                        {"node tainted", "tainted △"},
                                        {"node origin", "origin ×"},
                                        {"node not-compared", "not compared"}}),
                                caption, GraphTable(neighbourhood)));
}

}  // namespace verbatim
