// Two probes in one: the first sees, and may change, everything before the second does.
#pragma once

#include "trainer/stage_probe.h"

namespace verbatim {

/// Keeps references; thread-safe where both probes are. Gradients that the first probe accumulates
/// itself are not shown to the second.
class ProbePair : public StageProbe {
 public:
  ProbePair(StageProbe& first, StageProbe& second) : first_(first), second_(second) {}

  void OnSamples(std::int64_t seq, std::vector<std::uint32_t>& samples) override {
    first_.OnSamples(seq, samples);
    second_.OnSamples(seq, samples);
  }
  void BeforeTask(int stage, const Task& task) override {
    first_.BeforeTask(stage, task);
    second_.BeforeTask(stage, task);
  }
  void OnRead(std::int64_t seq, const Layer& layer, LayerRead& read) override {
    first_.OnRead(seq, layer, read);
    second_.OnRead(seq, layer, read);
  }
  void OnDropoutKey(std::int64_t seq, const Layer& layer, RandomKey& key) override {
    first_.OnDropoutKey(seq, layer, key);
    second_.OnDropoutKey(seq, layer, key);
  }
  void OnForward(std::int64_t seq, std::int32_t microbatch, const Layer& layer,
                 const at::Tensor& output) override {
    first_.OnForward(seq, microbatch, layer, output);
    second_.OnForward(seq, microbatch, layer, output);
  }
  bool OnGradients(std::int64_t seq, std::int32_t microbatch, const Layer& layer,
                   std::span<at::Tensor> sum, std::span<const at::Tensor> gradients) override {
    return first_.OnGradients(seq, microbatch, layer, sum, gradients) ||
           second_.OnGradients(seq, microbatch, layer, sum, gradients);
  }
  void BeforeUpdate(std::int64_t seq, const Layer& layer, std::span<const at::Tensor> gradients,
                    LayerState& state) override {
    first_.BeforeUpdate(seq, layer, gradients, state);
    second_.BeforeUpdate(seq, layer, gradients, state);
  }
  void AfterUpdate(std::int64_t seq, const Layer& layer, std::span<const at::Tensor> gradients,
                   LayerState& state) override {
    first_.AfterUpdate(seq, layer, gradients, state);
    second_.AfterUpdate(seq, layer, gradients, state);
  }
  void BeforeTransfer(const Transfer& transfer) override {
    first_.BeforeTransfer(transfer);
    second_.BeforeTransfer(transfer);
  }

 private:
  StageProbe& first_;
  StageProbe& second_;
};

}  // namespace verbatim
