// Proves of the page what needs no browser: what it says without scripts, that text stays text, and
// that it stays small and quick. tests/reports opens it in a browser.
#include "verify/html/render_html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string_view>

#include "tests/verify/sample_run.h"
#include "tests/verify/sample_verdicts.h"
#include "tests/verify/synthetic_run.h"
#include "verify/examine.h"
#include "verify/html/assets.h"
#include "verify/html/html_text.h"
#include "verify/report.h"

namespace verbatim {
namespace {

using testing::HasSubstr;
using testing::Not;

/// The page without styles and scripts.
std::string VisibleHtml(const std::string& page) {
  const std::size_t style = page.find("</style>");
  return page.substr(style, page.find("<script", style) - style);
}

nlohmann::json ChartData(const std::string& page) {
  constexpr std::string_view kOpen = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = page.find(kOpen) + kOpen.size();
  return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

TEST(RenderHtml, SaysTheVerdictWithoutScripts) {
  const SyntheticReader record({});
  for (const auto& [name, verdict] : SampleVerdicts()) {
    const std::string html = VisibleHtml(RenderHtml(verdict, record, nullptr, "0.1.0"));
    EXPECT_THAT(html, HasSubstr(std::string("<strong>") + VerdictWord(verdict) + "</strong>"));
    for (const Check& check : verdict.checks) EXPECT_THAT(html, HasSubstr(check.name));
    if (!verdict.first_difference) continue;
    EXPECT_THAT(html, HasSubstr(PlaceText(*verdict.first_difference)));
    EXPECT_THAT(html, HasSubstr(verdict.first_difference->next_command));
    EXPECT_THAT(html, HasSubstr(verdict.first_difference->recorded));
  }
}

TEST(RenderHtml, SaysWhatADrawIsWorthAndWhichTensorDiffers) {
  const SyntheticReader record({});
  const auto visible = [&](const Verdict& verdict) {
    return VisibleHtml(RenderHtml(verdict, record, nullptr, "0"));
  };
  EXPECT_THAT(visible(DrawnVerdict()), HasSubstr("Had 5.4 % of the subnets been faulty"));
  EXPECT_THAT(visible(ExplainedVerdict()), HasSubstr("gradient of weight"));
}

TEST(RenderHtml, HasAChartForEverythingThatThereIs) {
  const SyntheticReader record({});
  const SyntheticReader reference({.stages = 2});
  const auto compared = ChartData(RenderHtml(ComparedVerdict(), record, &reference, "0"));
  EXPECT_EQ(compared["map"]["cells"], "110111131221111221");
  EXPECT_EQ(compared["loss"]["record"]["points"].size(), 60U);
  EXPECT_FALSE(compared["loss"]["reference"].is_null());
  EXPECT_EQ(compared["timeline"]["stages"], 2);
  const auto alone = ChartData(RenderHtml(IntactVerdict(), record, nullptr, "0"));
  EXPECT_TRUE(alone["map"].is_null());
  EXPECT_TRUE(alone["loss"]["reference"].is_null());
  EXPECT_TRUE(alone["loss"]["focus"].is_null());
  // Without a difference the graph is that of the last subnet.
  EXPECT_EQ(alone["graph"]["nodes"].back()[0], 59);
  const SyntheticReader empty({.subnets = 0});
  for (const auto& chart : ChartData(RenderHtml(IntactVerdict(), empty, nullptr, "0"))) {
    EXPECT_TRUE(chart.is_null());
  }
}

TEST(RenderHtml, TextCannotBecomeMarkup) {
  const char* hostile = "</script><script>alert(1)</script><!--\xff";
  Verdict verdict = DifferentVerdict();
  verdict.record = verdict.spec_name = hostile;
  verdict.checks[1].problems = {hostile};
  verdict.first_difference->recorded = verdict.first_difference->next_command = hostile;
  verdict.environment_differences = {{hostile, hostile, hostile, true}};
  SampleRun sample = MakeSampleRun();
  for (LayerRow& layer : sample.layers) layer.name = hostile;
  sample.environment = {{hostile, hostile}};
  const std::string page = RenderHtml(verdict, SampleReader(sample), nullptr, hostile);
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, Not(HasSubstr("\xff")));
  EXPECT_THAT(VisibleHtml(page), HasSubstr("&lt;script&gt;alert(1)"));
  EXPECT_NO_THROW(ChartData(page));
}

TEST(RenderHtml, NeedsNothingElse) {
  for (const std::string_view asset : {ReportScript(), D3Script()}) {
    EXPECT_THAT(std::string(asset), Not(HasSubstr("</script")));
  }
  const std::string page = RenderHtml(IntactVerdict(), SyntheticReader({}), nullptr, "0");
  EXPECT_THAT(page, HasSubstr("Content-Security-Policy\" content=\"default-src 'none'"));
  EXPECT_THAT(VisibleHtml(page), Not(HasSubstr("src=")));
  EXPECT_THAT(page, Not(HasSubstr("{{")));
}

TEST(RenderHtml, SaysWhatCannotBeRead) {
  const SampleRun sample = MakeSampleRun();
  SampleReader reader(sample);
  reader.SetUnreadableFrom(7);
  const std::string page = RenderHtml(ExamineRecord(reader, "run.db"), reader, nullptr, "0");
  EXPECT_THAT(page, HasSubstr("<strong>damaged</strong>"));
  EXPECT_THAT(page, HasSubstr("<li>row is unreadable</li>"));
}

TEST(RenderHtml, StaysSmallHoweverLongTheRun) {
  const SyntheticReader record(
      {.subnets = 20'000, .positions = 48, .candidates = 6, .stages = 8, .microbatches = 4});
  Verdict verdict = ComparedVerdict();
  verdict.run = *record.Run();
  verdict.first_difference->seq = 9'000;
  verdict.comparison = SyntheticComparison(record, *verdict.first_difference);
  // As many of everything as a comparison keeps.
  verdict.comparison->origins.resize(kOriginsKept, *verdict.first_difference);
  verdict.comparison->tainted.clear();
  for (std::int64_t seq = 9'001; seq < 20'000; seq += 2) {
    verdict.comparison->tainted.push_back({seq, seq});
  }
  for (std::int32_t layer = 0; layer < 288; ++layer) {
    verdict.comparison->layers.push_back({layer, "block99.99", 9'000, 100});
  }
  const auto begin = std::chrono::steady_clock::now();
  const std::string page = RenderHtml(verdict, record, &record, "0.1.0");
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(page.size(), 3'000'000U);
  EXPECT_LT(seconds.count(), 60.0);  // two, in fact; the bound is for sanitizers on a busy machine
  EXPECT_LE(ChartData(page)["loss"]["record"]["points"].size(), 2'000U);
}

TEST(FillTemplate, DoesNotLookIntoValues) {
  EXPECT_EQ(FillTemplate("a {{x}} b {{y}}{{x}}", {{"x", "{{y}}"}, {"y", "2"}}), "a {{y}} b 2{{y}}");
}

}  // namespace
}  // namespace verbatim
