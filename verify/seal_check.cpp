#include "verify/seal_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "store/seal.h"
#include "verify/examine.h"
#include "verify/text.h"

namespace verbatim {
namespace {

/// Everything that is under a seal.
struct SealedRows {
  RunInfo run;
  std::vector<EnvironmentRow> environment;
  std::vector<LayerRow> layers;
  std::vector<ResumptionRow> resumptions;
  std::vector<EvaluationRow> evaluations;
  std::vector<CheckpointRow> checkpoints;
  std::vector<SealRow> seals;
};

Result<SealedRows> ReadSealedRows(const RecordReader& reader) {
  SealedRows rows;
  ASSIGN_OR_RETURN(rows.run, reader.Run());
  ASSIGN_OR_RETURN(rows.environment, reader.Environment());
  ASSIGN_OR_RETURN(rows.layers, reader.Layers());
  ASSIGN_OR_RETURN(rows.resumptions, reader.Resumptions());
  ASSIGN_OR_RETURN(rows.evaluations, reader.Evaluations());
  ASSIGN_OR_RETURN(rows.checkpoints, reader.Checkpoints());
  ASSIGN_OR_RETURN(rows.seals, reader.Seals());
  return rows;
}

/// `what`: what is under the seal.
void CompareSeal(const SealedRows& rows, std::string_view part, const Hash256& seal,
                 std::string_view what, Check& check) {
  const auto stored = std::find_if(rows.seals.begin(), rows.seals.end(),
                                   [&](const SealRow& row) { return row.part == part; });
  if (stored == rows.seals.end()) {
    AddDamage(check, fmt::format("seal {} is missing", part));
  } else if (stored->seal != seal) {
    AddDamage(check, fmt::format("{} changed after they were written (seal {}, recorded {})", what,
                                 ToShortHex(seal), ToShortHex(stored->seal)));
  }
}

void CheckResumptions(const SealedRows& rows, Check& check) {
  for (const ResumptionRow& row : rows.resumptions) {
    const std::int64_t number = &row - rows.resumptions.data() + 1;
    if (row.resumption == number) continue;
    AddDamage(check, fmt::format("resumption {} is missing", number));
    return;
  }
}

void CheckCheckpoints(const RecordReader& reader, const SealedRows& rows, Check& check) {
  for (const CheckpointRow& row : rows.checkpoints) {
    const auto stored = reader.StoredCheckpointSeal(row.cut);
    if (!stored) {
      AddDamage(check, stored.error().message);
    } else if (*stored != CheckpointSeal(row)) {
      AddDamage(check,
                fmt::format("the checkpoint at {} was changed after it was written", row.cut));
    } else if (row.layers.size() != rows.layers.size()) {
      AddDamage(check, fmt::format("the checkpoint at {} has {} layers of {}", row.cut,
                                   row.layers.size(), rows.layers.size()));
    }
  }
}

}  // namespace

Check CheckSeals(const RecordReader& reader) {
  Check check = PassedCheck(kCheckSeals);
  const auto rows = ReadSealedRows(reader);
  if (!rows) {
    AddDamage(check, rows.error().message);
    return check;
  }
  CompareSeal(*rows, "start", StartSeal(rows->run, rows->layers), "spec, data set or layers were",
              check);
  CompareSeal(*rows, "circumstances",
              CircumstancesSeal(rows->run, rows->environment, rows->resumptions),
              "the run's circumstances were", check);
  CompareSeal(*rows, "end", EndSeal(rows->run, rows->evaluations),
              "the run's end or its evaluations were", check);
  CheckResumptions(*rows, check);
  CheckCheckpoints(reader, *rows, check);
  check.detail = "start, circumstances, end";
  if (!rows->checkpoints.empty()) {
    check.detail += fmt::format(
        ", {}", FormatCount(std::ssize(rows->checkpoints), "checkpoint", "checkpoints"));
  }
  return check;
}

}  // namespace verbatim
