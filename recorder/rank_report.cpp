#include "recorder/rank_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "base/decoder.h"
#include "base/encoding.h"
#include "store/packed_rows.h"

namespace verbatim {
namespace {

void SortRows(RankReport& report) {
  std::ranges::sort(report.accesses, {}, &AccessRow::layer);
  std::ranges::sort(report.activations, {},
                    [](const auto& row) { return std::tuple(row.microbatch, row.position); });
  std::ranges::sort(report.activity, {}, [](const auto& row) {
    return std::tuple(row.stage, row.microbatch, row.phase, row.begin_ns);
  });
}

}  // namespace

std::string EncodeReport(std::int64_t seq, RankReport report) {
  SortRows(report);
  Encoder encoder;
  encoder.U8(report.loss ? 1 : 0)
      .U32(std::bit_cast<std::uint32_t>(report.loss.value_or(0.0f)))
      .I64(report.versions_moved)
      .I64(report.bytes_moved)
      .String(report.accesses.empty() ? "" : PackAccesses(seq, report.accesses))
      .String(PackActivations(report.activations).value_or(""))
      .String(PackActivity(report.activity).value_or(""));
  return encoder.bytes();
}

Result<RankReport> DecodeReport(std::int64_t seq, std::string_view bytes) {
  Decoder in(bytes);
  RankReport report;
  const std::uint8_t has_loss = in.U8();
  const std::uint32_t loss_bits = in.U32();
  if (has_loss != 0) report.loss = std::bit_cast<float>(loss_bits);
  report.versions_moved = in.I64();
  report.bytes_moved = in.I64();
  const std::string_view accesses = in.String();
  const std::string_view activations = in.String();
  const std::string_view activity = in.String();
  if (in.failed()) return BadInput(fmt::format("its report of subnet {} is cut off", seq));
  if (in.left() > 0 || has_loss > 1 || (has_loss == 0 && loss_bits != 0)) {
    return BadInput(fmt::format("its report of subnet {} has what no report has", seq));
  }
  std::optional<std::string> problem;
  if (!accesses.empty()) problem = UnpackAccesses(seq, accesses, report.accesses);
  if (!problem && !activations.empty())
    problem = UnpackActivations(activations, report.activations);
  if (!problem && !activity.empty()) problem = UnpackActivity(activity, report.activity);
  if (!problem && !accesses.empty() && report.accesses.empty()) problem = "accesses of no layer";
  if (problem) return BadInput(fmt::format("its report of subnet {}: {}", seq, *problem));
  return report;
}

void Replay(std::int64_t seq, const RankReport& report, Observer& observer) {
  for (const AccessRow& row : report.accesses) observer.OnAccess(seq, row);
  for (const ActivationRow& row : report.activations) observer.OnActivation(seq, row);
  for (const ActivityRow& row : report.activity) observer.OnActivity(seq, row);
  if (report.loss) observer.OnLoss(seq, *report.loss);
}

void RankObserver::OnAccess(std::int64_t seq, const AccessRow& access) {
  const std::lock_guard lock(mutex_);
  open_[seq].accesses.push_back(access);
}

void RankObserver::OnActivation(std::int64_t seq, const ActivationRow& activation) {
  const std::lock_guard lock(mutex_);
  open_[seq].activations.push_back(activation);
}

void RankObserver::OnActivity(std::int64_t seq, const ActivityRow& activity) {
  const std::lock_guard lock(mutex_);
  open_[seq].activity.push_back(activity);
}

RankReport RankObserver::Take(std::int64_t seq) {
  const std::lock_guard lock(mutex_);
  const auto node = open_.extract(seq);
  return node.empty() ? RankReport{} : std::move(node.mapped());
}

}  // namespace verbatim
