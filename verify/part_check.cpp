#include "verify/part_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "supernet/spec.h"
#include "verify/layer_table.h"
#include "verify/part_difference.h"
#include "verify/row_check.h"
#include "verify/text.h"

namespace verbatim {
namespace {

/// What is read of a record before its subnets.
struct RecordHead {
  RunInfo run;
  Spec spec;
  LayerTable table;
  std::vector<ResumptionRow> resumptions;
};

Result<RecordHead> ReadHead(const RecordReader& reader) {
  ASSIGN_OR_RETURN(RunInfo run, reader.Run());
  ASSIGN_OR_RETURN(Spec spec, ParseSpec(run.spec_json, "the recorded spec"));
  ASSIGN_OR_RETURN(auto layers, reader.Layers());
  ASSIGN_OR_RETURN(LayerTable table, LayerTable::Build(std::move(layers)));
  ASSIGN_OR_RETURN(auto resumptions, reader.Resumptions());
  return RecordHead{std::move(run), std::move(spec), std::move(table), std::move(resumptions)};
}

/// "rank 1's part was", "the parts of ranks 1 and 2 were".
std::string PartsText(const std::set<std::int32_t>& ranks) {
  if (ranks.size() == 1) return fmt::format("rank {}'s part was", *ranks.begin());
  std::string text = "the parts of ranks";
  for (const std::int32_t rank : ranks) {
    text += fmt::format("{} {}",
                        rank == *ranks.begin()    ? ""
                        : rank == *ranks.rbegin() ? " and"
                                                  : ",",
                        rank);
  }
  return text + " were";
}

class PartCheck {
 public:
  PartCheck(const RecordReader& reader, const RecordHead& head, const std::string& record)
      : reader_(reader),
        head_(head),
        record_(record),
        rows_(head.run, head.resumptions, RulesOf(head.spec), head.table) {
    for (const ResumptionRow& row : head.resumptions) {
      executed_once_below_ = std::min(executed_once_below_, row.cut);
    }
  }

  Status Compare(PartReader& file);
  Check Finish();
  const std::optional<Difference>& first() const { return first_; }

 private:
  Status ComparePartOf(const PartReader& file, const Part& part);
  void Report(const PartReader& file, Difference difference);
  std::string Detail() const;

  const RecordReader& reader_;
  const RecordHead& head_;
  const std::string& record_;
  const RowCheck rows_;
  /// Resumptions may have executed the subnets from here on a second time.
  std::int64_t executed_once_below_ = std::numeric_limits<std::int64_t>::max();
  Check check_ = PassedCheck(kCheckParts);
  std::optional<Difference> first_;
  std::set<std::int32_t> ranks_;
  std::int64_t compared_ = 0;
  std::int64_t damaged_rows_ = 0;                           ///< that could not be compared
  std::map<std::int64_t, std::set<std::int32_t>> missing_;  ///< ranks by subnets not recorded
  std::string torn_;
};

Status PartCheck::Compare(PartReader& file) {
  const PartSession& session = file.session();
  if (session.spec != SpecDigest(head_.run.spec_json)) {
    return BadInput(fmt::format("{} is of a run with another spec than {}", file.file(), record_),
                    "Name the files that this run's ranks left.");
  }
  ranks_.insert(session.rank);
  while (true) {
    ASSIGN_OR_RETURN(const auto part, file.Next());
    if (!part) break;
    RETURN_IF_ERROR(ComparePartOf(file, *part));
  }
  if (file.bytes_left() > 0) {
    torn_ +=
        fmt::format("; {} ends in {} of an unfinished part", file.file(),
                    FormatCount(static_cast<std::int64_t>(file.bytes_left()), "byte", "bytes"));
  }
  return {};
}

Status PartCheck::ComparePartOf(const PartReader& file, const Part& part) {
  ASSIGN_OR_RETURN(const auto row, reader_.Subnet(part.seq, {true, true, true}));
  if (!row) {
    missing_[part.seq].insert(file.session().rank);
    return {};
  }
  if (rows_.Problem(*row)) {
    ++damaged_rows_;
    return {};
  }
  ++compared_;
  const bool same_execution = file.sessions() == 1 && part.seq < executed_once_below_;
  if (auto difference = ComparePart(head_.table, *row, part, same_execution)) {
    Report(file, *std::move(difference));
  }
  return {};
}

void PartCheck::Report(const PartReader& file, Difference difference) {
  const std::int32_t rank = file.session().rank;
  const std::string layer =
      difference.layer ? fmt::format(", layer {}", difference.layer_name) : "";
  AddProblem(check_, fmt::format("subnet {}{}: {}: recorded {}, rank {} kept {} in {}",
                                 *difference.seq, layer, difference.what, difference.recorded, rank,
                                 difference.expected, file.file()));
  if (first_ && !IsEarlier(difference, *first_)) return;
  difference.kind = DifferenceClass::kForged;
  difference.cause = fmt::format(
      "rank {} kept another value in {}, on {}: the record or that file was changed afterwards",
      rank, file.file(), file.session().host);
  difference.next_command =
      fmt::format("verbatim replay {} --subnet {}", ShellPath(record_), *difference.seq);
  first_ = std::move(difference);
}

std::string PartCheck::Detail() const {
  std::string ranks;
  for (const std::int32_t rank : ranks_)
    ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", rank);
  std::string text = fmt::format("{} compared, of {} {}", FormatCount(compared_, "part", "parts"),
                                 ranks_.size() == 1 ? "rank" : "ranks", ranks);
  if (damaged_rows_ > 0) {
    text +=
        fmt::format("; {} not: the row is damaged", FormatCount(damaged_rows_, "part", "parts"));
  }
  if (!missing_.empty()) {
    const auto& [seq, of] = *missing_.begin();
    text += fmt::format("; {} not recorded: subnet {}: only {} committed",
                        FormatCount(std::ssize(missing_), "subnet", "subnets"), seq, PartsText(of));
  }
  return text + torn_;
}

Check PartCheck::Finish() {
  check_.detail = Detail();
  return std::move(check_);
}

void Add(Check check, Verdict& verdict) {
  verdict.checks.insert(verdict.checks.end() - 1, std::move(check));
}

}  // namespace

Result<std::vector<PartReader>> OpenParts(const std::vector<std::filesystem::path>& files) {
  std::vector<PartReader> parts;
  for (const std::filesystem::path& file : files) {
    ASSIGN_OR_RETURN(PartReader part, PartReader::Open(file));
    parts.push_back(std::move(part));
  }
  return parts;
}

Status AddPartCheck(const RecordReader& reader, std::vector<PartReader>& parts, Verdict& verdict) {
  const Check not_run{kCheckParts, Outcome::kNotRun, "the record is damaged"};
  const auto head = ReadHead(reader);
  if (!head) {
    if (!verdict.damaged) return tl::unexpected(head.error());
    Add(not_run, verdict);
    return {};
  }
  PartCheck comparison(reader, *head, verdict.record);
  for (PartReader& file : parts) {
    const Status compared = comparison.Compare(file);
    if (!compared && !verdict.damaged) return compared;
    if (!compared) {
      Add({kCheckParts, Outcome::kNotRun, compared.error().message}, verdict);
      return {};
    }
  }
  Check check = comparison.Finish();
  if (check.outcome == Outcome::kPassed && verdict.damaged) check.outcome = Outcome::kNotRun;
  Add(std::move(check), verdict);
  const bool is_forged =
      verdict.first_difference && verdict.first_difference->kind == DifferenceClass::kForged;
  // That the record was changed says more than anything that it says of itself.
  if (comparison.first() && !is_forged) verdict.first_difference = comparison.first();
  return {};
}

}  // namespace verbatim
