// Copies of every tensor that one subnet computes, taken while it is trained.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "trainer/stage_probe.h"

namespace verbatim {

struct CapturedTensor {
  std::string name;   ///< of the parameter, buffer or state
  at::Tensor tensor;  ///< contiguous, on the CPU
};

/// What one layer's update read and left.
struct CapturedUpdate {
  std::vector<CapturedTensor> gradients;
  std::vector<CapturedTensor> weights;  ///< parameters, then buffers
  std::vector<CapturedTensor> optimizer_state;
};

/// A probe that changes nothing. Thread-safe; read the results after the training.
class TensorCapture : public StageProbe {
 public:
  explicit TensorCapture(std::int64_t seq) : seq_(seq) {}

  void OnForward(std::int64_t seq, std::int32_t microbatch, const Layer& layer,
                 const at::Tensor& output) override;
  void AfterUpdate(std::int64_t seq, const Layer& layer, std::span<const at::Tensor> gradients,
                   LayerState& state) override;

  /// By micro-batch and layer, thus in forward order.
  using Outputs = std::map<std::pair<std::int32_t, int>, at::Tensor>;
  const Outputs& outputs() const { return outputs_; }
  const std::map<int, CapturedUpdate>& updates() const { return updates_; }  ///< by layer
  /// Layers that took part, by id.
  const std::map<int, Layer>& layers() const { return layers_; }

 private:
  std::int64_t seq_;
  std::mutex mutex_;
  Outputs outputs_;
  std::map<int, CapturedUpdate> updates_;
  std::map<int, Layer> layers_;
};

}  // namespace verbatim
