// The rows of a record that are not subnets: those that its writer inserts at its start, when it is
// resumed and when it ends, with the seals over them (store/seal.h).
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/hash256.h"
#include "store/head.h"
#include "store/record.h"
#include "store/tree.h"

namespace verbatim {

/// What a writer knows of the record besides the subnets' rows.
struct RecordState {
  RunInfo run;
  std::vector<EnvironmentRow> environment;
  std::vector<LayerRow> layers;
  std::vector<ResumptionRow> resumptions;
  std::vector<EvaluationRow> evaluations;
  RecordTree tree;
};

/// Of a record's reader.
Result<RecordState> ReadState(const RecordReader& reader);

/// A head of that state; with its end where the run has ended.
Head HeadOf(const RecordState& state);

// All of these throw SQLite::Exception; each is part of the caller's transaction.

/// Tables, views and the rows of a new run, with all seals.
void CreateRecord(SQLite::Database& database, const RecordState& state);
/// Adds the resumption, which is state's last, drops checkpoints above its cut, sets the run
/// running, and seals what that changes.
void InsertResumption(SQLite::Database& database, const RecordState& state);
void InsertEvaluations(SQLite::Database& database, std::span<const EvaluationRow> evaluations);
/// Writes status, detail and end of state.run.
void UpdateEnd(SQLite::Database& database, const RecordState& state);
/// Over how the run stands. Every change to that needs it.
void SealEnd(SQLite::Database& database, const RecordState& state);

}  // namespace verbatim
