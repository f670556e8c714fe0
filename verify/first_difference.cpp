#include "verify/first_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "recorder/content_digest.h"
#include "store/merkle.h"
#include "verify/blame.h"
#include "verify/diff.h"
#include "verify/environment_comparison.h"
#include "verify/layer_table.h"
#include "verify/row_check.h"
#include "verify/run_difference.h"
#include "verify/setting_differences.h"
#include "verify/subnet_difference.h"
#include "verify/text.h"

namespace verbatim {
namespace {

/// What is read of a record before its subnets.
struct Side {
  const RecordReader& reader;
  std::string path;
  const char* check;
  RunInfo run;
  std::vector<EnvironmentRow> environment;
  std::vector<ResumptionRow> resumptions;
  Spec spec;
  LayerTable table;
  std::int64_t subnets = 0;  ///< under its trees
};

Result<Side> OpenSide(const RecordReader& reader, const std::string& path, const char* check) {
  ASSIGN_OR_RETURN(RunInfo run, reader.Run());
  ASSIGN_OR_RETURN(auto environment, reader.Environment());
  ASSIGN_OR_RETURN(auto resumptions, reader.Resumptions());
  ASSIGN_OR_RETURN(Spec spec, ParseSpec(run.spec_json, path + ": the recorded spec"));
  ASSIGN_OR_RETURN(auto layers, reader.Layers());
  ASSIGN_OR_RETURN(LayerTable table, LayerTable::Build(std::move(layers)));
  ASSIGN_OR_RETURN(const std::int64_t subnets, reader.TreeSize());
  return Side{reader,
              path,
              check,
              std::move(run),
              std::move(environment),
              std::move(resumptions),
              std::move(spec),
              std::move(table),
              subnets};
}

/// One subnet of a side; what is wrong with it goes to the side's check.
Result<std::optional<SubnetRow>> ReadSound(const Side& side, std::int64_t seq, Check& check) {
  ASSIGN_OR_RETURN(auto row, side.reader.Subnet(seq, {true, true, false}));
  if (!row) {
    AddDamage(check, fmt::format("subnet {} is missing", seq));
    return std::nullopt;
  }
  if (ContentLeaf(*row) != row->content_leaf) {
    AddDamage(check, fmt::format("subnet {}: its row was changed after it was written", seq));
    return std::nullopt;
  }
  const RowCheck rows(side.run, side.resumptions, RulesOf(side.spec), side.table);
  if (const auto problem = rows.Problem(*row)) {
    AddDamage(check, *problem);
    return std::nullopt;
  }
  return row;
}

class TreeDiff {
 public:
  TreeDiff(Side a, Side b) : a_(std::move(a)), b_(std::move(b)) {}

  Result<Verdict> Run();

 private:
  void CompareSettings();
  bool CompareStarts();
  Status CompareSubnets();
  Status CompareRows(std::int64_t seq, Check& subnets);
  void AddRecordChecks(const Check& of_a, const Check& of_b);
  void AddFailure(Check& check, Difference difference);
  void Judge(Difference& difference) const;

  Side a_;
  Side b_;
  Verdict verdict_;
};

Result<Verdict> TreeDiff::Run() {
  if (a_.run.record_level != b_.run.record_level) {
    return UsageError(
        fmt::format("--first: A was recorded at level {}, B at level {}: no leaf of their trees "
                    "agrees",
                    a_.run.record_level, b_.run.record_level),
        "Leave out --first: then what both hold is compared.");
  }
  verdict_.kind = VerdictKind::kDiff;
  verdict_.record = a_.path;
  verdict_.reference = b_.path;
  verdict_.spec_name = a_.spec.name;
  verdict_.run = a_.run;
  verdict_.counts.subnets_planned = a_.run.subnets_planned;
  verdict_.counts.subnets = a_.subnets;
  CompareSettings();
  if (CompareStarts()) RETURN_IF_ERROR(CompareSubnets());
  return std::move(verdict_);
}

void TreeDiff::CompareSettings() {
  const Numerics profile = ProfileOf(a_.run);
  verdict_.environment_differences = CompareEnvironments(
      a_.environment, b_.environment, profile == ProfileOf(b_.run) ? profile : Numerics::kNative);
  verdict_.spec_differences = SpecDifferences(a_.run, b_.run);
  verdict_.layout_differences = LayoutDifferences(a_.run, b_.run);
  for (const Side* side : {&a_, &b_}) {
    verdict_.checks.push_back(PassedCheck(
        side->check,
        fmt::format("{}: {}", side->path, FormatCount(side->subnets, "subnet", "subnets"))));
  }
}

/// Whether both lay out the same layers, so that subnets can be compared.
bool TreeDiff::CompareStarts() {
  const std::vector<LayerRow>& of_a = a_.table.layers();
  const std::vector<LayerRow>& of_b = b_.table.layers();
  Check layers = PassedCheck(kDiffLayers, FormatCount(std::ssize(of_a), "layer", "layers"));
  if (const auto layout = CompareLayouts(of_a, of_b)) {
    AddFailure(layers, *layout);
    verdict_.checks.push_back(std::move(layers));
    return false;
  }
  Check data = PassedCheck(kDiffData, ToShortHex(a_.run.dataset_digest));
  if (auto data_set = CompareDataSets(a_.run.dataset_digest, b_.run.dataset_digest)) {
    data_set->cause = "the runs were trained on other data";
    AddFailure(data, *data_set);
  }
  if (const auto weights = CompareInitialWeights(of_a, of_b)) AddFailure(layers, *weights);
  verdict_.checks.push_back(std::move(layers));
  verdict_.checks.push_back(std::move(data));
  return true;
}

Status TreeDiff::CompareSubnets() {
  const std::int64_t size = std::min(a_.subnets, b_.subnets);
  ASSIGN_OR_RETURN(const auto first,
                   FirstDifference(size, a_.reader.ContentTree(), b_.reader.ContentTree()));
  verdict_.trees_compared = size;
  Check subnets = PassedCheck(kDiffSubnets);
  subnets.detail = fmt::format(
      "{}{} compared by their trees{}", a_.subnets == b_.subnets ? "" : "the first ",
      FormatCount(size, "subnet", "subnets"),
      first ? fmt::format(": subnet {} is the first that is not equal", *first) : ": equal");
  if (first) RETURN_IF_ERROR(CompareRows(*first, subnets));
  verdict_.checks.push_back(std::move(subnets));
  return {};
}

Status TreeDiff::CompareRows(std::int64_t seq, Check& subnets) {
  Check& check_a = verdict_.checks[0];
  Check& check_b = verdict_.checks[1];
  ASSIGN_OR_RETURN(const auto of_a, ReadSound(a_, seq, check_a));
  ASSIGN_OR_RETURN(const auto of_b, ReadSound(b_, seq, check_b));
  if (!of_a || !of_b) {
    verdict_.damaged = true;
    verdict_.first_damaged_subnet = seq;
    subnets.outcome = Outcome::kNotRun;
    return {};
  }
  auto difference = CompareSubnetRows(a_.table, *of_a, *of_b);
  if (!difference) {
    return BadInput(fmt::format("{} and {}: the leaves of subnet {} differ, its rows do not",
                                a_.path, b_.path, seq),
                    "Leave out --first, or examine both with verbatim verify.");
  }
  difference->seq = seq;
  AddFailure(subnets, *std::move(difference));
  return {};
}

void TreeDiff::AddFailure(Check& check, Difference difference) {
  AddProblem(check, fmt::format("{} differ{}: A {}, B {}", difference.what,
                                difference.what.ends_with('s') ? "" : "s", difference.recorded,
                                difference.expected));
  if (verdict_.first_difference) return;
  Judge(difference);
  verdict_.first_difference = std::move(difference);
}

void TreeDiff::Judge(Difference& difference) const {
  std::vector<SettingDifference> fields;
  for (const SettingDifference& field : verdict_.spec_differences) {
    if (BearsOnSubnets(field.key, a_.run, b_.run)) fields.push_back(field);
  }
  // Whether the schedules were causal is not known: so much was not read.
  BlameSpec(fields, false, difference);
  BlameEnvironment(verdict_.environment_differences, difference);
  difference.next_command =
      fmt::format("verbatim diff {} {}{}", ShellPath(a_.path), ShellPath(b_.path),
                  difference.kind == DifferenceClass::kComputation ? " --explain" : "");
}

}  // namespace

Result<Verdict> FindFirstDifference(const RecordReader& a, const std::string& a_path,
                                    const RecordReader& b, const std::string& b_path) {
  ASSIGN_OR_RETURN(Side side_a, OpenSide(a, a_path, kCheckRecordA));
  ASSIGN_OR_RETURN(Side side_b, OpenSide(b, b_path, kCheckRecordB));
  ASSIGN_OR_RETURN(Verdict verdict, TreeDiff(std::move(side_a), std::move(side_b)).Run());
  const bool is_empty =
      !verdict.damaged && !verdict.first_difference && verdict.trees_compared == 0;
  if (!is_empty) return verdict;
  return BadInput(
      fmt::format("{} and {} have no subnet in common: nothing was compared", a_path, b_path),
      "Compare records of runs that finished at least one subnet.");
}

}  // namespace verbatim
