#include "store/schema.h"

#include <sqlite3.h>

#include <array>
#include <utility>

#include "store/format.h"
#include "store/packed_views.h"

namespace verbatim {
namespace {

static_assert(SQLITE_VERSION_NUMBER >= 3037000, "STRICT tables need SQLite 3.37");

// `subnets` holds nearly all of a record. Its short columns come first, so that a tree's leaves can
// be read without the pages that a long row overflows to.
constexpr std::array<const char*, 9> kTableSql = {
    R"sql(CREATE TABLE run (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  tool_version TEXT NOT NULL,
  spec_json TEXT NOT NULL,
  spec_folder TEXT NOT NULL,
  command_line TEXT NOT NULL,
  policy TEXT NOT NULL,
  record_level TEXT NOT NULL,
  device TEXT NOT NULL,
  stages INTEGER NOT NULL,
  in_flight INTEGER NOT NULL,
  partition TEXT NOT NULL,
  subnets_planned INTEGER NOT NULL,
  dataset_digest BLOB NOT NULL CHECK (length(dataset_digest) = 16),
  started_utc TEXT NOT NULL,
  ended_utc TEXT,
  status TEXT NOT NULL CHECK (status IN ('running', 'complete', 'interrupted', 'failed')),
  status_detail TEXT NOT NULL
) STRICT)sql",
    R"sql(CREATE TABLE environment (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID)sql",
    R"sql(CREATE TABLE layers (
  layer INTEGER PRIMARY KEY CHECK (layer BETWEEN 0 AND 1048575),
  name TEXT NOT NULL UNIQUE,
  position INTEGER NOT NULL,
  candidate INTEGER NOT NULL,
  op TEXT NOT NULL,
  versioned INTEGER NOT NULL CHECK (versioned IN (0, 1)),
  initial_digest BLOB NOT NULL CHECK (length(initial_digest) = 16)
) STRICT)sql",
    R"sql(CREATE TABLE subnets (
  seq INTEGER PRIMARY KEY,
  choices TEXT NOT NULL,
  samples BLOB NOT NULL,
  batch_digest BLOB NOT NULL CHECK (length(batch_digest) = 16),
  loss_bits INTEGER NOT NULL,
  content_leaf BLOB NOT NULL CHECK (length(content_leaf) = 32),
  layout_leaf BLOB NOT NULL CHECK (length(layout_leaf) = 32),
  accesses BLOB NOT NULL,
  activations BLOB,
  activity BLOB
) STRICT)sql",
    R"sql(CREATE TABLE evaluations (
  evaluation INTEGER PRIMARY KEY,
  choices TEXT NOT NULL,
  correct INTEGER NOT NULL,
  total INTEGER NOT NULL
) STRICT)sql",
    R"sql(CREATE TABLE resumptions (
  resumption INTEGER PRIMARY KEY,
  tool_version TEXT NOT NULL,
  command_line TEXT NOT NULL,
  policy TEXT NOT NULL,
  device TEXT NOT NULL,
  stages INTEGER NOT NULL,
  in_flight INTEGER NOT NULL,
  partition TEXT NOT NULL,
  cut INTEGER NOT NULL,
  started_utc TEXT NOT NULL,
  facts_json TEXT NOT NULL
) STRICT)sql",
    R"sql(CREATE TABLE checkpoints (
  cut INTEGER PRIMARY KEY,
  created_utc TEXT NOT NULL,
  manifest BLOB NOT NULL,
  seal BLOB NOT NULL CHECK (length(seal) = 32)
) STRICT)sql",
    R"sql(CREATE TABLE tree (
  node INTEGER PRIMARY KEY,
  content BLOB NOT NULL CHECK (length(content) = 32),
  layout BLOB NOT NULL CHECK (length(layout) = 32)
) STRICT)sql",
    R"sql(CREATE TABLE seals (
  part TEXT PRIMARY KEY CHECK (part IN ('start', 'circumstances', 'end')),
  seal BLOB NOT NULL CHECK (length(seal) = 32)
) STRICT, WITHOUT ROWID)sql",
};

// Of a step run only.
constexpr const char* kStepsSql = R"sql(CREATE TABLE steps (
  seq INTEGER PRIMARY KEY REFERENCES subnets (seq),
  step INTEGER NOT NULL,
  facts TEXT NOT NULL
) STRICT)sql";

// The float32 behind loss_bits, exactly, as a REAL: significand * 2^power, with the power of two
// split into factors that fit 64-bit integers.
constexpr const char* kSubnetLossesSql = R"sql(CREATE VIEW subnet_losses AS
WITH parts AS (
  SELECT seq, loss_bits >> 23 & 255 AS exponent, loss_bits & 8388607 AS fraction,
         CASE WHEN loss_bits >> 31 THEN -1.0 ELSE 1.0 END AS sign
  FROM subnets
), scaled AS (
  SELECT seq, exponent, fraction, sign, max(exponent, 1) - 150 AS power,
         sign * (fraction + CASE WHEN exponent > 0 THEN 8388608 ELSE 0 END) AS significand
  FROM parts
)
SELECT seq, CASE
    WHEN exponent < 255 THEN significand
      * (1 << min(max(power, 0), 60)) * (1 << max(power - 60, 0))
      / (1 << min(max(-power, 0), 60)) / (1 << min(max(-power - 60, 0), 60))
      / (1 << max(-power - 120, 0))
    WHEN fraction = 0 THEN sign * 9e999
    ELSE 'NaN'
  END AS loss
FROM scaled)sql";

// The sample indices in subnets.samples, one row each: little-endian bytes by their hex digits.
constexpr const char* kSubnetSamplesSql = R"sql(CREATE VIEW subnet_samples AS
WITH RECURSIVE places (place) AS (
  SELECT 0 UNION ALL
  SELECT place + 1 FROM places
  WHERE place + 1 < (SELECT max(length(samples)) / 4 FROM subnets)
), words AS (
  SELECT seq, place, hex(substr(samples, 4 * place + 1, 4)) AS word
  FROM subnets JOIN places ON place < length(samples) / 4
)
SELECT seq, place,
  (instr('123456789ABCDEF', substr(word, 7, 1)) << 28)
    + (instr('123456789ABCDEF', substr(word, 8, 1)) << 24)
    + (instr('123456789ABCDEF', substr(word, 5, 1)) << 20)
    + (instr('123456789ABCDEF', substr(word, 6, 1)) << 16)
    + (instr('123456789ABCDEF', substr(word, 3, 1)) << 12)
    + (instr('123456789ABCDEF', substr(word, 4, 1)) << 8)
    + (instr('123456789ABCDEF', substr(word, 1, 1)) << 4)
    + instr('123456789ABCDEF', substr(word, 2, 1)) AS sample
FROM words)sql";

constexpr const char* kLineageSql = R"sql(CREATE VIEW lineage AS
SELECT name, layer, seq, read_seq, base_seq, stage,
       lower(hex(weights)) AS weights, lower(hex(optimizer_state)) AS optimizer_state,
       lower(hex(gradients)) AS gradients
FROM layers JOIN accesses USING (layer))sql";

constexpr const char* kTimelineSql = R"sql(CREATE VIEW timeline AS
SELECT seq, stage, microbatch,
       CASE phase WHEN 0 THEN 'forward' WHEN 1 THEN 'backward' WHEN 2 THEN 'update' END AS phase,
       begin_ns, begin_ns + duration_ns AS end_ns
FROM activity)sql";

/// "CREATE TABLE run (…": table, run. SQLite keeps the statement as it is.
SchemaObject ObjectOf(std::string sql) {
  const std::size_t kind = sql.find(' ') + 1;
  const std::size_t name = sql.find(' ', kind) + 1;
  return {sql.substr(kind, name - kind - 1) == "TABLE" ? "table" : "view",
          sql.substr(name, sql.find(' ', name) - name), std::move(sql)};
}

std::vector<SchemaObject> BuildSchema(RunKind kind) {
  std::vector<SchemaObject> objects;
  for (const char* sql : kTableSql) objects.push_back(ObjectOf(sql));
  if (kind == RunKind::kSteps) objects.push_back(ObjectOf(kStepsSql));
  for (std::string& sql : PackedViewsSql()) objects.push_back(ObjectOf(std::move(sql)));
  for (const char* sql : {kSubnetLossesSql, kSubnetSamplesSql, kLineageSql, kTimelineSql}) {
    objects.push_back(ObjectOf(sql));
  }
  return objects;
}

}  // namespace

const std::vector<SchemaObject>& RecordSchema(RunKind kind) {
  static const std::vector<SchemaObject> supernet = BuildSchema(RunKind::kSupernet);
  static const std::vector<SchemaObject> steps = BuildSchema(RunKind::kSteps);
  return kind == RunKind::kSteps ? steps : supernet;
}

std::int32_t SchemaVersion(RunKind kind) {
  return kind == RunKind::kSteps ? kStepsSchema : kSupernetSchema;
}

std::optional<RunKind> KindOfSchema(std::int32_t version) {
  if (version == kSupernetSchema) return RunKind::kSupernet;
  if (version == kStepsSchema) return RunKind::kSteps;
  return std::nullopt;
}

}  // namespace verbatim
