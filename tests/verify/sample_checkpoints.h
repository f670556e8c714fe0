// Checkpoints of a sample run, with files whose tensors have the digests that its accesses record.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "recorder/digest.h"
#include "store/checkpoint_files.h"
#include "store/layer_metadata.h"
#include "store/merkle.h"
#include "store/safetensors.h"
#include "tests/verify/sample_run.h"

namespace verbatim {

/// What a layer's file holds after the update of `version`: two bytes of weights, and the step.
struct LayerContent {
  LayerContent(const LayerRow& row, std::int64_t version)
      : weight{static_cast<char>(row.layer), static_cast<char>(version)}, step(version + 1) {
    metadata.layer = row.name;
    metadata.version = version;
    metadata.parameters = {"weight"};
    metadata.has_step = row.versioned;
  }

  StoredTensors Tensors() const {
    StoredTensors tensors;
    tensors.metadata = EncodeLayerMetadata(metadata);
    tensors.tensors = {{"weight", DType::kUInt8, {2}, weight}};
    if (metadata.has_step) {
      tensors.tensors.push_back(
          {kStepTensor, DType::kInt64, {}, {reinterpret_cast<const char*>(&step), sizeof(step)}});
    }
    return tensors;
  }
  Digest Weights() const {
    NamedTensorsDigest digest;
    const std::int64_t shape[] = {2};
    digest.Add("weight", DigestTensor({DType::kUInt8, shape, weight.data()}));
    return digest.Finish();
  }
  Digest OptimizerState() const {
    NamedTensorsDigest digest;
    digest.Add("step", DigestTensor({DType::kInt64, {}, &step}));
    return digest.Finish();
  }

  LayerMetadata metadata;
  std::string weight;
  std::int64_t step;
};

/// Makes the digests of a sample those of LayerContent.
inline void UseDigestsOfContents(SampleRun& sample) {
  for (LayerRow& row : sample.layers) row.initial_digest = LayerContent(row, -1).Weights();
  for (SubnetRow& subnet : sample.subnets) {
    for (AccessRow& access : subnet.accesses) {
      const LayerContent content(sample.layers[access.layer], subnet.seq);
      access.weights = content.Weights();
      access.optimizer_state = content.OptimizerState();
    }
  }
}

/// Writes the checkpoint's files into `folder`.
inline CheckpointRow TakeCheckpoint(const SampleRun& sample, std::int64_t cut,
                                    const std::filesystem::path& folder) {
  CheckpointRow row;
  row.cut = cut;
  row.created_utc = "2026-01-31T12:00:04Z";
  auto files = CheckpointFiles::Open(folder);
  VERBATIM_CHECK(files.has_value(), "{}", files.error().message);
  for (const LayerRow& layer : sample.layers) {
    std::int64_t version = -1;
    for (const SubnetRow& subnet : sample.subnets) {
      for (const AccessRow& access : subnet.accesses) {
        if (access.layer == layer.layer && subnet.seq < cut) version = subnet.seq;
      }
    }
    row.layers.push_back(
        {version, files->Write(EncodeSafetensors(LayerContent(layer, version).Tensors())).value()});
  }
  return row;
}

}  // namespace verbatim
