#include "store/seal.h"

#include <string_view>

#include "base/encoding.h"
#include "store/merkle.h"
#include "store/packed_rows.h"

namespace verbatim {
namespace {

template <typename Bytes>
void AddBytes(Encoder& out, const Bytes& value) {
  out.Bytes(value.bytes.data(), value.bytes.size());
}

Encoder Labelled(std::string_view label) {
  Encoder out;
  out.String(label);
  return out;
}

template <typename Rows>
void AddCount(Encoder& out, const Rows& rows) {
  out.U32(static_cast<std::uint32_t>(rows.size()));
}

void AddResumption(Encoder& out, const ResumptionRow& row) {
  out.I64(row.resumption).String(row.tool_version).String(row.command_line).String(row.policy);
  out.String(row.device).I64(row.stages).I64(row.in_flight).String(row.partition).I64(row.cut);
  out.String(row.started_utc).String(row.facts_json);
}

}  // namespace

Hash256 StartSeal(const RunInfo& run, std::span<const LayerRow> layers) {
  Encoder out = Labelled("verbatim.seal.start.1");
  out.String(run.spec_json).I64(run.subnets_planned);
  AddBytes(out, run.dataset_digest);
  AddCount(out, layers);
  for (const LayerRow& layer : layers) {
    out.U32(static_cast<std::uint32_t>(layer.layer)).String(layer.name);
    out.U32(static_cast<std::uint32_t>(layer.position));
    out.U32(static_cast<std::uint32_t>(layer.candidate));
    out.String(layer.op).U8(layer.versioned ? 1 : 0);
    AddBytes(out, layer.initial_digest);
  }
  return Blake2b(out.bytes());
}

Hash256 CircumstancesSeal(const RunInfo& run, std::span<const EnvironmentRow> environment,
                          std::span<const ResumptionRow> resumptions) {
  Encoder out = Labelled("verbatim.seal.circumstances.1");
  out.String(run.tool_version).String(run.spec_folder).String(run.command_line);
  out.String(run.policy).String(run.record_level).String(run.device);
  out.I64(run.stages).I64(run.in_flight).String(run.partition).String(run.started_utc);
  AddCount(out, environment);
  for (const EnvironmentRow& row : environment) out.String(row.key).String(row.value);
  AddCount(out, resumptions);
  for (const ResumptionRow& row : resumptions) AddResumption(out, row);
  return Blake2b(out.bytes());
}

Hash256 EndSeal(const RunInfo& run, std::span<const EvaluationRow> evaluations) {
  Encoder out = Labelled("verbatim.seal.end.1");
  out.String(ToString(run.status)).String(run.status_detail).String(run.ended_utc);
  AddCount(out, evaluations);
  for (const EvaluationRow& row : evaluations) {
    out.I64(row.index);
    AddCount(out, row.choices);
    for (const std::uint16_t choice : row.choices) out.U32(choice);
    out.I64(row.correct).I64(row.total);
  }
  return Blake2b(out.bytes());
}

Hash256 CheckpointSeal(const CheckpointRow& checkpoint) {
  Encoder out = Labelled("verbatim.seal.checkpoint.1");
  out.I64(checkpoint.cut).String(checkpoint.created_utc);
  AddCount(out, checkpoint.layers);
  const std::string manifest = PackManifest(checkpoint.layers);
  out.Bytes(manifest.data(), manifest.size());
  return Blake2b(out.bytes());
}

}  // namespace verbatim
