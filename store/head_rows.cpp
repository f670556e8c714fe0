#include "store/head_rows.h"

#include "base/utc_time.h"
#include "store/insert_row.h"
#include "store/reader.h"
#include "store/schema.h"
#include "store/seal.h"
#include "store/values.h"

namespace verbatim {
namespace {

void InsertRun(SQLite::Database& database, const RunInfo& run) {
  SQLite::Statement insert(
      database, "INSERT INTO run VALUES (1,?,?,?,?,?,?,?,?,?,?,?,?,?,NULL,'running','')");
  InsertRow(insert)
      .Text(run.tool_version)
      .Text(run.spec_json)
      .Text(run.spec_folder)
      .Text(run.command_line)
      .Text(run.policy)
      .Text(run.record_level)
      .Text(run.device)
      .Int(run.stages)
      .Int(run.in_flight)
      .Text(run.partition)
      .Int(run.subnets_planned)
      .Blob(run.dataset_digest)
      .Text(run.started_utc)
      .Run();
}

void InsertEnvironment(SQLite::Database& database, std::span<const EnvironmentRow> environment) {
  SQLite::Statement insert(database, "INSERT INTO environment VALUES (?,?)");
  for (const EnvironmentRow& row : environment) {
    InsertRow(insert).Text(row.key).Text(row.value).Run();
  }
}

void InsertLayers(SQLite::Database& database, std::span<const LayerRow> layers) {
  SQLite::Statement insert(database, "INSERT INTO layers VALUES (?,?,?,?,?,?,?)");
  for (const LayerRow& row : layers) {
    InsertRow(insert)
        .Int(row.layer)
        .Text(row.name)
        .Int(row.position)
        .Int(row.candidate)
        .Text(row.op)
        .Int(row.versioned ? 1 : 0)
        .Blob(row.initial_digest)
        .Run();
  }
}

void Seal(SQLite::Database& database, const std::string& part, const Hash256& seal) {
  SQLite::Statement insert(database, "INSERT OR REPLACE INTO seals VALUES (?,?)");
  InsertRow(insert).Text(part).Blob(seal).Run();
}

void SealCircumstances(SQLite::Database& database, const RecordState& state) {
  Seal(database, "circumstances",
       CircumstancesSeal(state.run, state.environment, state.resumptions));
}

}  // namespace

Result<RecordState> ReadState(const RecordReader& reader) {
  RecordState state;
  ASSIGN_OR_RETURN(state.run, reader.Run());
  ASSIGN_OR_RETURN(state.environment, reader.Environment());
  ASSIGN_OR_RETURN(state.layers, reader.Layers());
  ASSIGN_OR_RETURN(state.resumptions, reader.Resumptions());
  ASSIGN_OR_RETURN(state.evaluations, reader.Evaluations());
  ASSIGN_OR_RETURN(state.tree, RecordTree::Of(reader));
  return state;
}

Head HeadOf(const RecordState& state) {
  Head head;
  head.subnets = state.tree.size();
  head.content_root = state.tree.ContentRoot();
  head.layout_root = state.tree.LayoutRoot();
  head.start = StartSeal(state.run, state.layers);
  head.resumptions = std::ssize(state.resumptions);
  head.circumstances = CircumstancesSeal(state.run, state.environment, state.resumptions);
  if (state.run.status != RunStatus::kRunning) head.end = EndSeal(state.run, state.evaluations);
  head.created_utc = UtcNow();
  return head;
}

void CreateRecord(SQLite::Database& database, const RecordState& state) {
  for (const SchemaObject& object : RecordSchema(state.run.kind)) database.exec(object.sql);
  InsertRun(database, state.run);
  InsertEnvironment(database, state.environment);
  InsertLayers(database, state.layers);
  Seal(database, "start", StartSeal(state.run, state.layers));
  SealCircumstances(database, state);
  SealEnd(database, state);
}

void InsertResumption(SQLite::Database& database, const RecordState& state) {
  const ResumptionRow& row = state.resumptions.back();
  SQLite::Statement insert(database, "INSERT INTO resumptions VALUES (?,?,?,?,?,?,?,?,?,?,?)");
  InsertRow(insert)
      .Int(row.resumption)
      .Text(row.tool_version)
      .Text(row.command_line)
      .Text(row.policy)
      .Text(row.device)
      .Int(row.stages)
      .Int(row.in_flight)
      .Text(row.partition)
      .Int(row.cut)
      .Text(row.started_utc)
      .Text(row.facts_json)
      .Run();
  SQLite::Statement unusable(database, "DELETE FROM checkpoints WHERE cut > ?");
  InsertRow(unusable).Int(row.cut).Run();
  SealCircumstances(database, state);
  UpdateEnd(database, state);
}

void InsertEvaluations(SQLite::Database& database, std::span<const EvaluationRow> evaluations) {
  SQLite::Statement insert(database, "INSERT INTO evaluations VALUES (?,?,?,?)");
  for (const EvaluationRow& row : evaluations) {
    const std::string choices = EncodeChoices(row.choices);
    InsertRow(insert).Int(row.index).Text(choices).Int(row.correct).Int(row.total).Run();
  }
}

void UpdateEnd(SQLite::Database& database, const RecordState& state) {
  const std::string status = ToString(state.run.status);
  SQLite::Statement update(database, "UPDATE run SET status = ?, status_detail = ?, ended_utc = ?");
  InsertRow row(update);
  row.Text(status).Text(state.run.status_detail);
  (state.run.ended_utc.empty() ? row.Null() : row.Text(state.run.ended_utc)).Run();
  SealEnd(database, state);
}

void SealEnd(SQLite::Database& database, const RecordState& state) {
  Seal(database, "end", EndSeal(state.run, state.evaluations));
}

}  // namespace verbatim
