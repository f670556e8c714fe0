// Writes reports of every kind into the folder that it is given, for the tests in Python beside it.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/check.h"
#include "store/reader.h"
#include "tests/verify/sample_verdicts.h"
#include "tests/verify/step_sample.h"
#include "tests/verify/synthetic_run.h"
#include "verify/diff.h"
#include "verify/html/render_html.h"
#include "verify/report.h"
#include "verify/report_junit.h"
#include "verify/report_markdown.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

void WriteFile(const fs::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  VERBATIM_CHECK(file.good(), "{} cannot be written", path.string());
}

/// The verdict of a re-execution that finds subnet `seq` different.
Verdict ReexecutedVerdict(const SyntheticReader& record, std::int64_t seq) {
  Verdict verdict = EqualVerdict();
  verdict.run = *record.Run();
  verdict.counts.subnets = verdict.counts.subnets_audited = record.shape().subnets;
  verdict.counts.subnets_reexecuted = seq;
  verdict.coverage.recorded = verdict.coverage.executed = record.shape().subnets;
  verdict.environment_differences = {{"cpu.model", "Sample <CPU>", "Other CPU", true}};
  Difference difference = ScheduleDifference();
  difference.kind = DifferenceClass::kComputation;
  difference.seq = seq;
  difference.what = "weights";
  difference.recorded = "00000000";
  difference.expected = "dfbb1e8b";
  difference.cause = "the loss was equal, the updated layer is not";
  verdict.first_difference = difference;
  return verdict;
}

/// The same of two records, all of which was compared.
Verdict DiffVerdict(const SyntheticReader& record, std::int64_t seq) {
  Verdict verdict = ReexecutedVerdict(record, seq);
  verdict.kind = VerdictKind::kDiff;
  verdict.reexecuted = false;
  verdict.reference = "other.db";
  verdict.spec_differences = {{"training.lr.base", "0.1", "0.2"}};
  verdict.comparison = SyntheticComparison(record, *verdict.first_difference);
  return verdict;
}

void WriteHtmlReports(const fs::path& folder) {
  const SyntheticReader record({});
  const SyntheticReader reference({.stages = 2, .spread = 0.4F});
  const auto write = [&](const std::string& name, const Verdict& verdict,
                         const RecordReader* other) {
    WriteFile(folder / (name + ".html"), RenderHtml(verdict, record, other, "0.1.0"));
  };
  for (auto& [name, verdict] : SampleVerdicts()) {
    if (verdict.reference.empty()) write(name, verdict, nullptr);
  }
  write("reexecuted", ReexecutedVerdict(record, 40), nullptr);
  write("diff", DiffVerdict(record, 31), &reference);
}

/// Of two step runs, the second of which goes another way from step 12 on.
void WriteStepReports(const fs::path& folder) {
  SampleSteps sample;
  sample.steps = 40;
  const std::string a = WriteSteps(sample, (folder / "a.db").string());
  sample.noise = [](std::int64_t step) { return step == 12 ? "a bit flipped" : ""; };
  const std::string b = WriteSteps(sample, (folder / "b.db").string());
  {
    const auto record = RecordReader::Open(a);
    const auto reference = RecordReader::Open(b);
    VERBATIM_CHECK(record && reference, "step runs cannot be read");
    const auto verdict = CompareRecords(**record, "a.db", **reference, "b.db");
    VERBATIM_CHECK(verdict.has_value(), "{}", verdict.error().message);
    WriteFile(folder / "steps.json", RenderJson(*verdict, "0.1.0"));
    WriteFile(folder / "steps.xml", RenderJunit(*verdict, "0.1.0"));
    WriteFile(folder / "steps.html", RenderHtml(*verdict, **record, reference->get(), "0.1.0"));
  }
  fs::remove(a);
  fs::remove(b);
}

void WriteReports(const fs::path& folder) {
  fs::remove_all(folder);
  fs::create_directories(folder);
  for (const auto& [name, verdict] : SampleVerdicts()) {
    WriteFile(folder / (name + ".json"), RenderJson(verdict, "0.1.0"));
    WriteFile(folder / (name + ".xml"), RenderJunit(verdict, "0.1.0"));
    WriteFile(folder / (name + ".md"), RenderMarkdown(verdict));
  }
  WriteHtmlReports(folder);
  WriteStepReports(folder);
}

}  // namespace
}  // namespace verbatim

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: write_reports FOLDER\n");
    return 2;
  }
  verbatim::WriteReports(argv[1]);
  return 0;
}
