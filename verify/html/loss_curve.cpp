#include "verify/html/loss_curve.h"

#include <algorithm>
#include <cmath>

#include "verify/text.h"

namespace verbatim {
namespace {

/// How many of `count` things go into each of at most `most` groups.
std::int64_t GroupSize(std::int64_t count, std::int64_t most) {
  return std::max<std::int64_t>(1, (count + most - 1) / most);
}

}  // namespace

LossCurveBuilder::LossCurveBuilder(std::int64_t subnets)
    : subnets_per_window_(GroupSize(subnets, LossCurve::kWindowsMax)) {
  // A bucket leaves two points; where every loss fits, none is left out.
  if (subnets > LossCurve::kPointsMax) {
    curve_.subnets_per_bucket = GroupSize(subnets, LossCurve::kPointsMax / 2);
  }
}

void LossCurveBuilder::Add(std::int64_t seq, std::uint32_t loss_bits) {
  if (curve_.subnets % subnets_per_window_ == 0) {
    CloseWindow();
    window_.first = seq;
  }
  if (curve_.subnets % curve_.subnets_per_bucket == 0) CloseBucket();
  ++curve_.subnets;
  window_.last = seq;
  const float loss = LossFromBits(loss_bits);
  if (!std::isfinite(loss)) {
    ++curve_.not_finite;
    if (!curve_.first_not_finite) curve_.first_not_finite = seq;
    return;
  }
  const LossPoint point{seq, loss};
  if (!lowest_) lowest_ = highest_ = point;
  if (loss < lowest_->loss) lowest_ = point;
  if (loss > highest_.loss) highest_ = point;
  if (in_window_++ == 0) window_.lowest = window_.highest = loss;
  window_.lowest = std::min(window_.lowest, loss);
  window_.highest = std::max(window_.highest, loss);
  window_.mean += loss;
}

void LossCurveBuilder::CloseBucket() {
  if (!lowest_) return;
  const auto [first, second] = std::minmax(
      *lowest_, highest_, [](const LossPoint& a, const LossPoint& b) { return a.seq < b.seq; });
  curve_.points.push_back(first);
  if (second.seq != first.seq) curve_.points.push_back(second);
  lowest_.reset();
}

void LossCurveBuilder::CloseWindow() {
  if (in_window_ > 0) {
    window_.mean /= static_cast<double>(in_window_);
    curve_.windows.push_back(window_);
  }
  window_ = {};
  in_window_ = 0;
}

LossCurve LossCurveBuilder::Finish() {
  CloseBucket();
  CloseWindow();
  return std::move(curve_);
}

}  // namespace verbatim
