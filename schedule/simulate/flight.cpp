#include "schedule/simulate/flight.h"

#include <algorithm>
#include <utility>

namespace verbatim {
namespace {

std::int64_t Share(std::int64_t bytes, double share) {
  return std::llround(static_cast<double>(bytes) * share);
}

}  // namespace

Ticks StageLoad::DurationOf(const Task& task, bool is_last) const {
  if (task.kind == TaskKind::kUpdate) return update;
  const MicrobatchLoad& load = is_last ? last : whole;
  return task.kind == TaskKind::kForward ? load.forward : load.backward;
}

StageLoad LoadMeter::Measure(std::span<const std::int32_t> layers, int begin, int end) const {
  Sums sums;
  for (const RangeSegment& segment : recompute_.Segments(begin, end)) Add(layers, segment, sums);
  const std::int64_t output_bytes = costs_.layers[layers[end - 1]].output_bytes;
  return {.begin = begin,
          .end = end,
          .whole = LoadOf(sums, output_bytes, 1.0),
          .last = LoadOf(sums, output_bytes, last_),
          .update = time_.Of(sums.update)};
}

void LoadMeter::Add(std::span<const std::int32_t> layers, const RangeSegment& segment,
                    Sums& sums) const {
  double forward = 0.0;
  std::int64_t bytes = 0;
  for (int position = segment.begin; position < segment.end; ++position) {
    const LayerCost& cost = costs_.layers[layers[position]];
    forward += cost.forward;
    sums.backward += cost.backward;
    sums.update += cost.update;
    bytes += cost.activation_bytes;
  }
  sums.forward += forward;
  sums.whole_bytes += bytes;
  // While a segment is computed, all of it is there; and what is kept of those before it.
  sums.activation_bytes_max = std::max(sums.activation_bytes_max, sums.activation_bytes + bytes);
  if (segment.recomputes) {
    sums.backward += forward;
    sums.recompute += forward;
    // Skips alone hand their input on: whoever takes it counts it.
    bytes = std::min(bytes, costs_.layers[layers[segment.begin - 1]].output_bytes);
  }
  sums.activation_bytes += bytes;
}

MicrobatchLoad LoadMeter::LoadOf(const Sums& sums, std::int64_t output_bytes, double share) const {
  return {.forward = time_.Of(sums.forward * share),
          .backward = time_.Of(sums.backward * share),
          .recompute = time_.Of(sums.recompute * share),
          .activation_bytes = Share(sums.activation_bytes, share),
          .activation_bytes_max = Share(sums.activation_bytes_max, share),
          .whole_bytes = Share(sums.whole_bytes, share),
          .output_bytes = Share(output_bytes, share)};
}

Flight& Flights::Add() {
  if (free_.empty()) {
    flights_.push_back(std::make_unique<Flight>());
  } else {
    flights_.push_back(std::move(free_.back()));
    free_.pop_back();
  }
  return *flights_.back();
}

bool Flights::Contains(std::int64_t seq) const {
  return seq >= first_ && flights_[static_cast<std::size_t>(seq - first_)] != nullptr;
}

void Flights::Remove(std::int64_t seq) {
  free_.push_back(std::move(flights_[static_cast<std::size_t>(seq - first_)]));
  while (!flights_.empty() && flights_.front() == nullptr) {
    flights_.pop_front();
    ++first_;
  }
}

}  // namespace verbatim
