#include "schedule/simulate/flight.h"

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
  double forward = 0.0;
  double backward = 0.0;
  double update = 0.0;
  std::int64_t activation_bytes = 0;
  for (int position = begin; position < end; ++position) {
    const LayerCost& cost = costs_.layers[layers[position]];
    forward += cost.forward;
    backward += cost.backward;
    update += cost.update;
    activation_bytes += cost.activation_bytes;
  }
  const std::int64_t output_bytes = costs_.layers[layers[end - 1]].output_bytes;
  return {.begin = begin,
          .end = end,
          .whole = {time_.Of(forward), time_.Of(backward), activation_bytes, output_bytes},
          .last = {time_.Of(forward * last_), time_.Of(backward * last_),
                   Share(activation_bytes, last_), Share(output_bytes, last_)},
          .update = time_.Of(update)};
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
