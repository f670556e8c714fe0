#include "trainer/fault_injection.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <vector>

#include "base/check.h"
#include "trainer/tensor_digest.h"

namespace verbatim {
namespace {

using Tensors = std::vector<at::Tensor>;

/// The most significant bit of a float32's mantissa: half of its value, and never a NaN.
constexpr std::uint32_t kFlippedBit = 1u << 22;

Tensors CopyAll(const Tensors& tensors) {
  Tensors copies;
  for (const at::Tensor& tensor : tensors) copies.push_back(tensor.detach().clone());
  return copies;
}

/// Writes through the tensors' own version counters, as an update does.
void WriteAll(const Tensors& from, Tensors& to) {
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < to.size(); ++i) to[i].variable_data().copy_(from[i]);
}

/// Bit for bit: at::equal would take 0 for -0.
bool AreEqual(std::span<const at::Tensor> left, std::span<const at::Tensor> right) {
  return std::equal(
      left.begin(), left.end(), right.begin(), right.end(),
      [](const auto& a, const auto& b) { return TensorDigest(a) == TensorDigest(b); });
}

/// dropped-dependency and stale-read: both read what was there before the predecessor's update;
/// only the first admits it.
class OldWeights : public FaultInjection {
 public:
  using FaultInjection::FaultInjection;

  void BeforeUpdate(std::int64_t seq, const Layer& layer, std::span<const at::Tensor>,
                    LayerState& state) override {
    if (seq == plan().predecessor && IsLayer(layer)) {
      old_ = {state.version, CopyAll(state.parameters), nullptr};
    }
  }

  void OnRead(std::int64_t seq, const Layer& layer, LayerRead& read) override {
    if (!IsPlace(seq, layer)) return;
    if (plan().kind == FaultKind::kStaleRead) {
      RequireChange(!AreEqual(old_.parameters, read.parameters));
    } else {
      read.version = old_.version;
    }
    for (at::Tensor& parameter : old_.parameters) parameter.requires_grad_();
    read.parameters = std::move(old_.parameters);
    Happened();
  }

 private:
  LayerRead old_;
};

class BitFlip : public FaultInjection {
 public:
  BitFlip(const FaultPlan& fault, std::uint64_t seed) : FaultInjection(fault), seed_(seed) {}

  void AfterUpdate(std::int64_t seq, const Layer& layer, std::span<const at::Tensor>,
                   LayerState& state) override {
    if (!IsPlace(seq, layer)) return;
    const at::NoGradGuard no_grad;
    KeyedRandom random = FaultDraws(plan(), seed_);
    const at::Tensor& parameter =
        state.parameters[random.Below(static_cast<std::uint32_t>(state.parameters.size()))];
    const std::int64_t place = random.Below(static_cast<std::uint32_t>(parameter.numel()));
    at::Tensor element = parameter.variable_data().view(-1).narrow(0, place, 1);
    const auto bits = std::bit_cast<std::uint32_t>(element.item<float>());
    element.fill_(std::bit_cast<float>(bits ^ kFlippedBit));
    Happened();
  }

 private:
  std::uint64_t seed_;
};

class LostUpdate : public FaultInjection {
 public:
  using FaultInjection::FaultInjection;

  void BeforeUpdate(std::int64_t seq, const Layer& layer, std::span<const at::Tensor>,
                    LayerState& state) override {
    if (!IsPlace(seq, layer)) return;
    parameters_ = CopyAll(state.parameters);
    optimizer_state_ = CopyAll(state.optimizer_state);
  }

  void AfterUpdate(std::int64_t seq, const Layer& layer, std::span<const at::Tensor>,
                   LayerState& state) override {
    if (!IsPlace(seq, layer)) return;
    WriteAll(parameters_, state.parameters);
    WriteAll(optimizer_state_, state.optimizer_state);
    --state.updates;
    Happened();
  }

 private:
  Tensors parameters_;
  Tensors optimizer_state_;
};

class SwappedSamples : public FaultInjection {
 public:
  SwappedSamples(const FaultPlan& fault, std::uint64_t seed) : FaultInjection(fault), seed_(seed) {}

  void OnSamples(std::int64_t seq, std::vector<std::uint32_t>& samples) override {
    if (!IsSubnet(seq)) return;
    KeyedRandom random = FaultDraws(plan(), seed_);
    const auto size = static_cast<std::uint32_t>(samples.size());
    const std::uint32_t one = random.Below(size);
    const std::uint32_t other = (one + 1 + random.Below(size - 1)) % size;
    std::swap(samples[one], samples[other]);
    Happened();
  }

 private:
  std::uint64_t seed_;
};

/// The key of the subnet after it, as a miscounting caller would take.
class DropoutKey : public FaultInjection {
 public:
  using FaultInjection::FaultInjection;

  void OnDropoutKey(std::int64_t seq, const Layer& layer, RandomKey& key) override {
    if (!IsPlace(seq, layer)) return;
    ++key.c;
    Happened();
  }
};

/// Starts the sum at another micro-batch: at the first one with which a bit of it changes.
class GradientOrder : public FaultInjection {
 public:
  GradientOrder(const FaultPlan& fault, std::int64_t microbatches)
      : FaultInjection(fault), microbatches_(static_cast<std::size_t>(microbatches)) {}

  bool OnGradients(std::int64_t seq, std::int32_t, const Layer& layer, std::span<at::Tensor> sum,
                   std::span<const at::Tensor> gradients) override {
    if (!IsPlace(seq, layer)) return false;
    held_.emplace_back(gradients.begin(), gradients.end());
    if (held_.size() < microbatches_) return true;
    const Tensors right = SumFrom(0);
    Tensors wrong = right;
    for (std::size_t first = 1; first < microbatches_ && AreEqual(wrong, right); ++first) {
      wrong = SumFrom(first);
    }
    RequireChange(!AreEqual(wrong, right));
    std::move(wrong.begin(), wrong.end(), sum.begin());
    held_.clear();
    Happened();
    return true;
  }

 private:
  /// Adds `first`, the micro-batches after it, then those before it.
  Tensors SumFrom(std::size_t first) const {
    Tensors sum;
    for (const at::Tensor& gradient : held_[first]) {
      sum.push_back(gradient.clone(at::MemoryFormat::Contiguous));
    }
    for (std::size_t step = 1; step < microbatches_; ++step) {
      const Tensors& added = held_[(first + step) % microbatches_];
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i].add_(added[i]);
    }
    return sum;
  }

  std::size_t microbatches_;
  std::vector<Tensors> held_;  ///< by micro-batch
};

class StaleOptimizer : public FaultInjection {
 public:
  using FaultInjection::FaultInjection;

  void BeforeUpdate(std::int64_t seq, const Layer& layer, std::span<const at::Tensor>,
                    LayerState& state) override {
    if (!IsLayer(layer)) return;
    if (seq == plan().predecessor) old_ = CopyAll(state.optimizer_state);
    if (!IsSubnet(seq)) return;
    RequireChange(!AreEqual(old_, state.optimizer_state));
    WriteAll(old_, state.optimizer_state);
    Happened();
  }

 private:
  Tensors old_;
};

class ThreadCount : public FaultInjection {
 public:
  ThreadCount(const FaultPlan& fault, std::int64_t threads)
      : FaultInjection(fault), threads_(static_cast<int>(threads)) {}

  void BeforeTask(int, const Task& task) override {
    const bool is_faulty = task.seq >= *plan().place.seq;
    at::set_num_threads(threads_ + (is_faulty ? 1 : 0));
    if (is_faulty) Happened();
  }

 private:
  int threads_;
};

}  // namespace

void FaultInjection::RequireChange(bool changes) const {
  if (changes) return;
  throw std::runtime_error(fmt::format("the injected {} changes no bit at {}; name another subnet",
                                       ToString(plan_.kind), ToString(plan_.place)));
}

std::unique_ptr<FaultInjection> MakeFaultInjection(const FaultPlan& plan, const Spec& spec,
                                                   std::int64_t threads_per_stage) {
  switch (plan.kind) {
    case FaultKind::kDroppedDependency:
    case FaultKind::kStaleRead:
      return std::make_unique<OldWeights>(plan);
    case FaultKind::kBitFlip:
      return std::make_unique<BitFlip>(plan, spec.seed);
    case FaultKind::kLostUpdate:
      return std::make_unique<LostUpdate>(plan);
    case FaultKind::kSwappedSamples:
      return std::make_unique<SwappedSamples>(plan, spec.seed);
    case FaultKind::kDropoutKey:
      return std::make_unique<DropoutKey>(plan);
    case FaultKind::kGradientOrder:
      return std::make_unique<GradientOrder>(plan, spec.training.microbatches);
    case FaultKind::kStaleOptimizer:
      return std::make_unique<StaleOptimizer>(plan);
    case FaultKind::kThreadCount:
      return std::make_unique<ThreadCount>(plan, threads_per_stage);
    case FaultKind::kRewrittenRow:
    case FaultKind::kDeletedRow:
    case FaultKind::kTruncatedFile:
      return nullptr;
  }
  VERBATIM_CHECK(false, "fault {}", static_cast<int>(plan.kind));
}

}  // namespace verbatim
