#include "verify/html/render_html.h"

#include <fmt/format.h>

#include "verify/html/assets.h"
#include "verify/html/html_charts.h"
#include "verify/html/html_sections.h"
#include "verify/html/html_text.h"
#include "verify/markup.h"
#include "verify/report.h"

namespace verbatim {
namespace {

/// Links to the sections that are there.
std::string Contents(std::string_view body) {
  constexpr std::pair<const char*, const char*> kSections[] = {{"difference", "First difference"},
                                                               {"compared", "Compared"},
                                                               {"checks", "Checks"},
                                                               {"loss", "Loss"},
                                                               {"timeline", "Stages"},
                                                               {"map", "Equality"},
                                                               {"neighbourhood", "Neighbourhood"},
                                                               {"environment", "Environment"},
                                                               {"next", "Next"}};
  std::string html;
  for (const auto& [id, text] : kSections) {
    if (body.find(fmt::format("<section id=\"{}\"", id)) == std::string_view::npos) continue;
    html += fmt::format("<li><a href=\"#{}\">{}</a></li>", id, text);
  }
  return html;
}

std::string Subject(const Verdict& verdict) {
  std::string text = verdict.record;
  if (!verdict.reference.empty()) text += " against " + verdict.reference;
  return text;
}

}  // namespace

std::string RenderHtml(const Verdict& verdict, const RecordReader& record,
                       const RecordReader* reference, const std::string& tool_version) {
  const ReportData data = ReadReportData(verdict, record, reference);
  std::string body = FirstDifferenceHtml(verdict);
  body += ComparedHtml(verdict, data);
  body += ChecksHtml(verdict);
  body += ProblemsHtml(data);
  body += EqualityMapHtml(verdict, data);
  body += NeighbourhoodHtml(verdict, data);
  body += LossHtml(verdict, data);
  body += TimelineHtml(verdict, data);
  body += EnvironmentHtml(verdict, data);
  body += NextCommandsHtml(verdict);
  return FillTemplate(
      ReportTemplate(),
      {{"title", EscapeXml(fmt::format("{}: {}", Subject(verdict), VerdictWord(verdict)))},
       {"style", std::string(ReportStyle())},
       {"subject", EscapeXml(Subject(verdict))},
       {"name", EscapeXml(verdict.spec_name)},
       {"contents", Contents(body)},
       {"verdict", VerdictHtml(verdict)},
       {"body", body},
       {"version", EscapeXml(tool_version)},
       {"data", ChartsJson(verdict, data)},
       {"d3", std::string(D3Script())},
       {"script", std::string(ReportScript())}});
}

}  // namespace verbatim
