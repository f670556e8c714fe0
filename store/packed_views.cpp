#include "store/packed_views.h"

#include <fmt/format.h>

#include "store/packed_format.h"

namespace verbatim {
namespace {

static_assert(kAccessPrefixBytes == 6 && kNarrowDistanceBytes == 4 && kWideDistanceBytes == 8);
static_assert(kActivationItemBytes == 24 && kManifestItemBytes == 40);
static_assert(kActivityHeadBytes == 9 && kNarrowTaskBytes == 11 && kWideTaskBytes == 25);

/// Every byte in order: where one stands in it is its value, for SQLite has no function for that.
std::string EveryByte() {
  std::string hex;
  for (int byte = 0; byte < 256; ++byte) hex += fmt::format("{:02X}", byte);
  return fmt::format("bytes (every) AS (SELECT x'{}')", hex);
}

/// `count` bytes of column `bytes` from place `at` on (which counts from 1) as one number. Of eight
/// bytes it is signed.
std::string Little(const char* bytes, const std::string& at, int count) {
  std::string sql;
  for (int i = 0; i < count; ++i) {
    const std::string place = i == 0 ? at : fmt::format("{} + {}", at, i);
    const std::string byte = fmt::format("instr(every, substr({}, {}, 1)) - 1", bytes, place);
    sql += i == 0 ? byte : fmt::format(" | (({}) << {})", byte, 8 * i);
  }
  return fmt::format("({})", sql);
}

/// 0, 1, 2, … below the largest `count` in table `of`.
std::string Places(const char* count, const char* of) {
  return fmt::format(R"sql(places (place) AS (
  SELECT 0 UNION ALL
  SELECT place + 1 FROM places WHERE place + 1 < (SELECT max({}) FROM {})
))sql",
                     count, of);
}

std::string AccessesView() {
  return fmt::format(
      R"sql(CREATE VIEW accesses AS
WITH RECURSIVE {every}, flagged AS (
  SELECT seq, accesses AS packed, every, {flags} AS flags FROM subnets, bytes
), shaped AS (
  SELECT seq, packed, every, flags, 4 + (flags >> 4 & 1) * 4 AS distance,
         6 + (1 + (flags & 1)) * (4 + (flags >> 4 & 1) * 4)
           + 16 * ((flags >> 1 & 1) + (flags >> 2 & 1) + (flags >> 3 & 1)) AS width
  FROM flagged
), {places}, items AS (
  SELECT seq, every, flags, distance, substr(packed, 2 + place * width, width) AS item
  FROM shaped JOIN places ON place < (length(packed) - 1) / width
), parts AS (
  SELECT seq, flags, item, {layer} AS layer, {stage} AS stage, {present} AS present,
         CASE distance WHEN 8 THEN {wide_read} ELSE {read} << 32 >> 32 END AS read_distance,
         CASE distance WHEN 8 THEN {wide_base} ELSE {base} << 32 >> 32 END AS base_distance,
         7 + distance * (1 + (flags & 1)) AS digests
  FROM items
)
SELECT seq, layer, seq - read_distance AS read_seq,
       seq - CASE WHEN flags & 1 THEN base_distance ELSE read_distance END AS base_seq, stage,
       CASE WHEN present & 1 THEN substr(item, digests, 16) END AS weights,
       CASE WHEN present & 2 THEN substr(item, digests + 16 * (flags >> 1 & 1), 16) END
         AS optimizer_state,
       CASE WHEN present & 4 THEN
         substr(item, digests + 16 * ((flags >> 1 & 1) + (flags >> 2 & 1)), 16) END AS gradients
FROM parts)sql",
      fmt::arg("every", EveryByte()), fmt::arg("flags", Little("accesses", "1", 1)),
      fmt::arg("places", Places("(length(packed) - 1) / width", "shaped")),
      fmt::arg("layer", Little("item", "1", 3)), fmt::arg("stage", Little("item", "4", 2)),
      fmt::arg("present", Little("item", "6", 1)), fmt::arg("read", Little("item", "7", 4)),
      fmt::arg("wide_read", Little("item", "7", 8)), fmt::arg("base", Little("item", "11", 4)),
      fmt::arg("wide_base", Little("item", "15", 8)));
}

std::string ActivityView() {
  return fmt::format(
      R"sql(CREATE VIEW activity AS
WITH RECURSIVE {every}, shaped AS (
  SELECT seq, activity AS packed, every, {base} AS base, {wide} AS wide FROM subnets, bytes
  WHERE activity IS NOT NULL
), {places}, items AS (
  SELECT seq, every, base, wide, substr(packed, 10 + place * (11 + 14 * wide), 25) AS item
  FROM shaped JOIN places ON place < (length(packed) - 9) / (11 + 14 * wide)
)
SELECT seq, CASE wide WHEN 1 THEN {wide_stage} ELSE {stage} END AS stage,
       CASE wide WHEN 1 THEN {wide_microbatch} ELSE {microbatch} END AS microbatch,
       {phase} AS phase,
       base + CASE wide WHEN 1 THEN {wide_begin} ELSE {begin} END AS begin_ns,
       CASE wide WHEN 1 THEN {wide_duration} ELSE {duration} END AS duration_ns
FROM items)sql",
      fmt::arg("every", EveryByte()), fmt::arg("base", Little("activity", "1", 8)),
      fmt::arg("wide", Little("activity", "9", 1)),
      fmt::arg("places", Places("(length(packed) - 9) / (11 + 14 * wide)", "shaped")),
      fmt::arg("wide_stage", Little("item", "1", 4)), fmt::arg("stage", Little("item", "1", 1)),
      fmt::arg("wide_microbatch", Little("item", "5", 4)),
      fmt::arg("microbatch", Little("item", "2", 1)),
      fmt::arg("phase", Little("item", "3 + 6 * wide", 1)),
      fmt::arg("wide_begin", Little("item", "10", 8)), fmt::arg("begin", Little("item", "4", 4)),
      fmt::arg("wide_duration", Little("item", "18", 8)),
      fmt::arg("duration", Little("item", "8", 4)));
}

std::string ActivationsView() {
  return fmt::format(
      R"sql(CREATE VIEW activations AS
WITH RECURSIVE {every}, {places}, items AS (
  SELECT seq, every, substr(activations, 1 + place * 24, 24) AS item
  FROM bytes, subnets JOIN places ON place < length(activations) / 24
)
SELECT seq, {microbatch} AS microbatch, {position} AS position, substr(item, 9, 16) AS digest
FROM items)sql",
      fmt::arg("every", EveryByte()),
      fmt::arg("places", Places("length(activations) / 24", "subnets")),
      fmt::arg("microbatch", Little("item", "1", 4)), fmt::arg("position", Little("item", "5", 4)));
}

std::string CheckpointLayersView() {
  return fmt::format(
      R"sql(CREATE VIEW checkpoint_layers AS
WITH RECURSIVE {every}, {places}, items AS (
  SELECT cut, place, every, substr(manifest, 1 + place * 40, 40) AS item
  FROM bytes, checkpoints JOIN places ON place < length(manifest) / 40
)
SELECT cut, place AS layer, {version} AS version, lower(hex(substr(item, 9, 32))) AS file
FROM items)sql",
      fmt::arg("every", EveryByte()),
      fmt::arg("places", Places("length(manifest) / 40", "checkpoints")),
      fmt::arg("version", Little("item", "1", 8)));
}

}  // namespace

std::vector<std::string> PackedViewsSql() {
  return {AccessesView(), ActivityView(), ActivationsView(), CheckpointLayersView()};
}

}  // namespace verbatim
