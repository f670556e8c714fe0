#include "store/schema.h"

#include <sqlite3.h>

namespace verbatim {

static_assert(SQLITE_VERSION_NUMBER >= 3037000, "STRICT tables need SQLite 3.37");

// `accesses` holds nearly all of a record. Its key is the rowid, (seq, layer) in one number: rows
// appended in order fill their pages, which the pages of a WITHOUT ROWID table do not, and `seq`
// and `layer` are computed from it instead of stored: 51 bytes per access instead of 58.
const char kCreateSchemaSql[] = R"sql(
CREATE TABLE run (
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
) STRICT;

CREATE TABLE environment (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE layers (
  layer INTEGER PRIMARY KEY CHECK (layer BETWEEN 0 AND 1048575),
  name TEXT NOT NULL UNIQUE,
  position INTEGER NOT NULL,
  candidate INTEGER NOT NULL,
  op TEXT NOT NULL,
  versioned INTEGER NOT NULL CHECK (versioned IN (0, 1)),
  initial_digest BLOB NOT NULL CHECK (length(initial_digest) = 16)
) STRICT;

CREATE TABLE subnets (
  seq INTEGER PRIMARY KEY,
  choices TEXT NOT NULL,
  samples BLOB NOT NULL,
  batch_digest BLOB NOT NULL,
  loss_bits INTEGER NOT NULL,
  content_digest BLOB NOT NULL CHECK (length(content_digest) = 16)
) STRICT;

CREATE TABLE accesses (
  access INTEGER PRIMARY KEY,
  seq INTEGER NOT NULL GENERATED ALWAYS AS (access >> 20) VIRTUAL REFERENCES subnets (seq),
  layer INTEGER NOT NULL GENERATED ALWAYS AS (access & 1048575) VIRTUAL REFERENCES layers (layer),
  read_seq INTEGER NOT NULL,
  base_seq INTEGER,
  stage INTEGER NOT NULL,
  weights BLOB,
  optimizer_state BLOB,
  gradients BLOB
) STRICT;

CREATE TABLE activity (
  seq INTEGER NOT NULL REFERENCES subnets (seq),
  stage INTEGER NOT NULL,
  microbatch INTEGER NOT NULL,
  phase INTEGER NOT NULL,
  begin_ns INTEGER NOT NULL,
  duration_ns INTEGER NOT NULL,
  PRIMARY KEY (seq, stage, microbatch, phase, begin_ns)
) STRICT, WITHOUT ROWID;

CREATE TABLE activations (
  seq INTEGER NOT NULL REFERENCES subnets (seq),
  microbatch INTEGER NOT NULL,
  position INTEGER NOT NULL,
  digest BLOB NOT NULL,
  PRIMARY KEY (seq, microbatch, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE evaluations (
  evaluation INTEGER PRIMARY KEY,
  choices TEXT NOT NULL,
  correct INTEGER NOT NULL,
  total INTEGER NOT NULL
) STRICT;

-- The float32 behind loss_bits, exactly, as a REAL: significand * 2^power, with the power of two
-- split into factors that fit 64-bit integers.
CREATE VIEW subnet_losses AS
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
FROM scaled;

-- The sample indices in subnets.samples, one row each: little-endian bytes by their hex digits.
CREATE VIEW subnet_samples AS
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
FROM words;

CREATE VIEW lineage AS
SELECT name, layer, seq, read_seq, coalesce(base_seq, read_seq) AS base_seq, stage,
       lower(hex(weights)) AS weights, lower(hex(optimizer_state)) AS optimizer_state,
       lower(hex(gradients)) AS gradients
FROM layers JOIN accesses USING (layer);

CREATE VIEW timeline AS
SELECT seq, stage, microbatch,
       CASE phase WHEN 0 THEN 'forward' WHEN 1 THEN 'backward' WHEN 2 THEN 'update' END AS phase,
       begin_ns, begin_ns + duration_ns AS end_ns
FROM activity;
)sql";

}  // namespace verbatim
