#include "trainer/stage_report.h"

#include <ATen/ops/empty.h>

#include <optional>
#include <utility>

#include "trainer/tensor_digest.h"

namespace verbatim {

void StageReport::Batch(std::int64_t seq, const verbatim::Batch& batch) const {
  if (!context_.observer) return;
  PendingNamedDigest digest = TakeBatchDigest(batch);
  digest.Fetch();
  context_.results.Add(stream_.Record(),
                       [observer = context_.observer, seq, digest = std::move(digest)] {
                         observer->OnBatch(seq, digest.Finish());
                       });
}

void StageReport::Activation(const Task& task, const Layer& layer, const at::Tensor& output) const {
  if (!context_.observer || context_.record_level != RecordLevel::kFull) return;
  PendingDigests digest(1);
  digest.Take(output);
  digest.Fetch();
  context_.results.Add(stream_.Record(), [observer = context_.observer, task,
                                          position = layer.position, digest = std::move(digest)] {
    observer->OnActivation(task.seq, ActivationRow{task.microbatch, position, digest.At(0)});
  });
}

void StageReport::Loss(const Task& task, const at::Tensor& loss, SubnetRun& subnet) const {
  at::Tensor on_host = loss.detach();
  if (!on_host.is_cpu()) {  // pinned, or the copy would wait for the device
    on_host = at::empty({}, at::TensorOptions().dtype(at::kFloat).pinned_memory(true));
    on_host.copy_(loss.detach(), /*non_blocking=*/true);
  }
  const bool is_whole = task.microbatch == context_.spec.training.microbatches - 1;
  context_.results.Add(stream_.Record(), [observer = context_.observer, task, is_whole, &subnet,
                                          on_host = std::move(on_host)] {
    const float value = *on_host.const_data_ptr<float>();
    subnet.loss = task.microbatch == 0 ? value : subnet.loss + value;
    if (is_whole && observer) observer->OnLoss(task.seq, subnet.loss);
  });
}

void StageReport::Access(std::int64_t seq, const Layer& layer, const LayerState& state,
                         AccessRow access, std::span<const at::Tensor> gradients) const {
  if (!context_.observer) return;
  std::optional<PendingNamedDigest> weights;
  std::optional<PendingNamedDigest> optimizer_state;
  std::optional<PendingNamedDigest> gradient;
  if (context_.record_level != RecordLevel::kLosses) {
    weights = TakeWeightsDigest(layer, state);
    optimizer_state = TakeOptimizerStateDigest(layer, context_.spec.training.optimizer, state);
  }
  if (context_.record_level == RecordLevel::kFull) gradient = TakeGradientsDigest(layer, gradients);
  for (auto* digest : {&weights, &optimizer_state, &gradient}) {
    if (*digest) (*digest)->Fetch();
  }
  context_.results.Add(
      stream_.Record(),
      [observer = context_.observer, seq, access, weights = std::move(weights),
       optimizer_state = std::move(optimizer_state), gradient = std::move(gradient)]() mutable {
        if (weights) access.weights = weights->Finish();
        if (optimizer_state) access.optimizer_state = optimizer_state->Finish();
        if (gradient) access.gradients = gradient->Finish();
        observer->OnAccess(seq, access);
      });
}

void StageReport::Activity(const Task& task, Phase phase, std::int64_t begin_ns) const {
  if (!context_.observer) return;
  const ActivityRow row{stage_, task.microbatch, phase, begin_ns, context_.nanoseconds()};
  context_.results.Add(nullptr, [observer = context_.observer, seq = task.seq, row] {
    observer->OnActivity(seq, row);
  });
}

}  // namespace verbatim
