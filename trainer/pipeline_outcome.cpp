// Which subnets a run has, its clock, and how it ended.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "trainer/pipeline.h"

namespace verbatim {

std::int64_t Pipeline::SeqOf(std::int64_t index) const {
  return options_.sequence ? (*options_.sequence)[index] : index;
}

std::int64_t Pipeline::Planned() const {
  return options_.sequence ? std::ssize(*options_.sequence) : experiment_.spec.training.subnets;
}

std::int64_t Pipeline::RawNanoseconds() const {
  const std::chrono::nanoseconds passed = Clock::now() - start_;
  return options_.begin_ns + passed.count();
}

std::int64_t Pipeline::Nanoseconds() const {
  return std::max<std::int64_t>(0, RawNanoseconds() + clock_offset_.nanoseconds());
}

RunEnd Pipeline::OwnEnd() const {
  const std::int64_t planned = Planned();
  if (!failure_.empty()) {
    // Which of several ranks failed is not all that the record is to say.
    const bool tells_count = link_ && IsFirstRank();
    return {RunStatus::kFailed,
            tells_count ? fmt::format("{}; {} of {} subnets had finished", failure_,
                                      finished_.load(), planned)
                        : failure_,
            finished_};
  }
  if (bad_loss_) {
    return {RunStatus::kFailed,
            fmt::format("the loss of subnet {} is {}", bad_loss_->first,
                        std::isnan(bad_loss_->second) ? "NaN" : "infinite"),
            finished_};
  }
  if (finished_ < planned) {
    return {RunStatus::kInterrupted,
            fmt::format("stopped on request after {} of {} subnets", finished_.load(), planned),
            finished_};
  }
  return {RunStatus::kComplete, "", finished_};
}

TrainingOutcome Pipeline::Outcome() const {
  RunEnd end = failure_.empty() && end_ ? *end_ : OwnEnd();
  const auto sum = [](const std::vector<std::int64_t>& counts) {
    return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  };
  return {end.status,
          std::move(end.detail),
          end.subnets,
          scheduler_.versions_moved() + sum(versions_moved_),
          (link_ ? link_->bytes_moved() : 0) + sum(bytes_moved_),
          mover_ ? std::optional(mover_->statistics()) : std::nullopt};
}

}  // namespace verbatim
