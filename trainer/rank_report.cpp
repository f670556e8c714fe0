#include "trainer/rank_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include "base/encoding.h"
#include "base/little_endian.h"
#include "store/packed_rows.h"

namespace verbatim {
namespace {

/// Reads what EncodeReport writes; after the first lack it gives zeros.
class ReportReader {
 public:
  explicit ReportReader(std::string_view bytes) : bytes_(bytes) {}

  template <int kWidth>
  std::uint64_t Number() {
    const std::string_view field = Bytes(kWidth);
    return field.empty() ? 0 : GetLittle<kWidth>(field.data());
  }
  std::string_view String() { return Bytes(Number<4>()); }
  bool IsWhole() const { return is_sound_ && bytes_.empty(); }

 private:
  std::string_view Bytes(std::size_t size) {
    if (size > bytes_.size()) is_sound_ = false;
    if (!is_sound_) return {};
    const std::string_view field = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return field;
  }

  std::string_view bytes_;
  bool is_sound_ = true;
};

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
  ReportReader reader(bytes);
  RankReport report;
  const bool has_loss = reader.Number<1>() != 0;
  const auto loss = std::bit_cast<float>(static_cast<std::uint32_t>(reader.Number<4>()));
  if (has_loss) report.loss = loss;
  report.versions_moved = static_cast<std::int64_t>(reader.Number<8>());
  report.bytes_moved = static_cast<std::int64_t>(reader.Number<8>());
  const std::string_view accesses = reader.String();
  const std::string_view activations = reader.String();
  const std::string_view activity = reader.String();
  if (!reader.IsWhole()) return BadInput(fmt::format("its report of subnet {} is cut off", seq));
  std::optional<std::string> problem;
  if (!accesses.empty()) problem = UnpackAccesses(seq, accesses, report.accesses);
  if (!problem && !activations.empty())
    problem = UnpackActivations(activations, report.activations);
  if (!problem && !activity.empty()) problem = UnpackActivity(activity, report.activity);
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
