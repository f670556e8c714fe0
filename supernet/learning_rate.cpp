#include <cmath>
#include <numbers>

#include "base/check.h"
#include "supernet/spec.h"

namespace verbatim {
namespace {

double StepRate(const LrSpec& lr, std::int64_t seq) {
  double rate = lr.base;
  for (std::int64_t left = (seq - lr.warmup) / lr.every; left > 0; --left) {
    const double next = rate * lr.gamma;
    // From here on every product is the same, and there may be many.
    if (next == rate) break;
    rate = next;
  }
  return rate;
}

double CosineRate(const LrSpec& lr, std::int64_t subnets, std::int64_t seq) {
  const double progress =
      static_cast<double>(seq - lr.warmup) / static_cast<double>(subnets - lr.warmup);
  return lr.final + (lr.base - lr.final) * (0.5 * (1.0 + std::cos(std::numbers::pi * progress)));
}

}  // namespace

double LearningRate(const TrainingSpec& training, std::int64_t seq) {
  VERBATIM_CHECK(seq >= 0 && seq < training.subnets, "seq {} of {}", seq, training.subnets);
  const LrSpec& lr = training.lr;
  if (seq < lr.warmup) {
    return lr.base * static_cast<double>(seq + 1) / static_cast<double>(lr.warmup);
  }
  switch (lr.kind) {
    case LrKind::kConstant:
      return lr.base;
    case LrKind::kStep:
      return StepRate(lr, seq);
    case LrKind::kCosine:
      return CosineRate(lr, training.subnets, seq);
  }
  VERBATIM_CHECK(false, "learning rate kind {}", static_cast<int>(lr.kind));
}

}  // namespace verbatim
