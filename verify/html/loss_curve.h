// The losses of a run as few enough points to be drawn, whatever its length.
//
// Decimation keeps the lowest and the highest loss of every bucket of subnets, so that no spike is
// lost (the usual min/max decimation of oscilloscopes).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace verbatim {

struct LossPoint {
  std::int64_t seq = 0;
  float loss = 0.0F;
};

/// Consecutive subnets, `first` … `last`. The three losses are over the finite ones.
struct LossWindow {
  std::int64_t first = 0;
  std::int64_t last = 0;
  float lowest = 0.0F;
  double mean = 0.0;
  float highest = 0.0F;
};

struct LossCurve {
  static constexpr std::int64_t kPointsMax = 2000;
  static constexpr std::int64_t kWindowsMax = 50;

  std::int64_t subnets = 0;
  std::int64_t subnets_per_bucket = 1;  ///< 1: every finite loss is a point
  std::vector<LossPoint> points;        ///< ascending seq, finite
  std::vector<LossWindow> windows;      ///< ascending; none without a finite loss
  std::int64_t not_finite = 0;          ///< losses that are NaN or infinite
  std::optional<std::int64_t> first_not_finite;
};

/// Takes the losses in ascending seq; memory does not grow with the run.
class LossCurveBuilder {
 public:
  /// `subnets` is how many will come, 0 or more.
  explicit LossCurveBuilder(std::int64_t subnets);

  void Add(std::int64_t seq, std::uint32_t loss_bits);
  LossCurve Finish();

 private:
  void CloseBucket();
  void CloseWindow();

  LossCurve curve_;
  std::int64_t subnets_per_window_ = 1;
  std::optional<LossPoint> lowest_;  ///< of the open bucket
  LossPoint highest_;
  LossWindow window_;
  std::int64_t in_window_ = 0;  ///< finite losses of the open window
};

}  // namespace verbatim
