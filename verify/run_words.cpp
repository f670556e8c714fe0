#include "verify/run_words.h"

#include <fmt/format.h>

#include "verify/text.h"

namespace verbatim {

RunWords WordsOf(RunKind kind) {
  return kind == RunKind::kSteps ? RunWords{"step", "steps"} : RunWords{"subnet", "subnets"};
}

std::string CountRows(std::int64_t count, RunKind kind) {
  const RunWords words = WordsOf(kind);
  return FormatCount(count, words.one, words.many);
}

std::string CountText(const RunInfo& run, std::int64_t count) {
  const bool is_known = run.kind == RunKind::kSupernet || run.subnets_planned > 0;
  return is_known
             ? fmt::format("{} of {}", FormatCount(count), CountRows(run.subnets_planned, run.kind))
             : CountRows(count, run.kind);
}

std::int64_t NumberOf(const SubnetRow& row) {
  return row.step ? row.step->step : row.seq;
}

std::string NameOf(const SubnetRow& row) {
  return fmt::format("{} {}", row.step ? "step" : "subnet", NumberOf(row));
}

}  // namespace verbatim
