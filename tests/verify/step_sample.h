// Step runs of a model that is a chain of hashes: what a layer becomes follows from what it was,
// the batch and the hyper-parameters, so that a fault made on purpose is passed on as in a real
// run.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "recorder/digest.h"
#include "recorder/step_recorder.h"
#include "store/reader.h"

namespace verbatim {

/// A digest that follows from the words.
inline Digest DigestOf(std::string_view text) {
  return DigestBytes(text.data(), text.size());
}

inline std::vector<StepLayer> SampleLayers() {
  std::vector<StepLayer> layers(5);
  const char* const names[] = {"fc1.weight", "bn.mean", "fc2.weight", "fc2.bias", "relu"};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    layers[i].name = names[i];
    layers[i].shape = {static_cast<std::int64_t>(i) + 2};
    layers[i].initial_digest = DigestOf(fmt::format("initial {}", names[i]));
  }
  layers[1].kind = StepLayerKind::kBuffer;
  layers[4].kind = StepLayerKind::kCaptured;
  layers[4].initial_digest = Digest{};
  return layers;
}

/// The state of every layer by its name, while a run is simulated.
struct SampleState {
  std::map<std::string, Digest> weights;
  std::map<std::string, Digest> optimizer_state;
};

struct SampleSteps {
  StepRun run;
  std::vector<StepLayer> layers = SampleLayers();
  std::vector<EnvironmentRow> environment{{"torch.version", "2.8.0"}};
  std::int64_t first = 0;
  std::int64_t steps = 20;  ///< that are trained; of them `run.spec.every`-th ones are recorded
  std::string seed = "1";
  std::string data = "digits";
  RunStatus status = RunStatus::kComplete;

  /// Faults: called before a step's forward pass with its number and the state, and with the row
  /// once it is made.
  std::function<void(std::int64_t, SampleState&)> before;
  std::function<void(std::int64_t, StepRow&, SampleState&)> after;
  /// Text that everything in the step's forward pass depends on.
  std::function<std::string(std::int64_t)> noise;

  SampleSteps() {
    run.spec.name = "sample";
    run.spec.seed = 1;
    run.spec.gradients = true;
    run.record_level = "full";
    run.tool_version = "0.1.0";
    run.folder = "/";
    run.command_line = "python train.py";
  }
};

/// One step: all digests from the state, which it changes. Layers are named as the sample has them.
inline StepRow SampleStep(const SampleSteps& sample, std::int64_t step, SampleState& state) {
  StepRow row;
  row.facts.step = step;
  row.facts.settings = {{"lr", "0.1"}, {"momentum", "0.9"}};
  row.facts.random_state = DigestOf(fmt::format("generators {} {}", sample.seed, step));
  row.batch = DigestOf(fmt::format("batch {} {} {}", sample.data, sample.seed, step));
  std::string forward = ToHex(*row.batch) + ToHex(*row.facts.random_state);
  for (const StepLayer& layer : sample.layers) {
    if (layer.kind != StepLayerKind::kCaptured) forward += ToHex(state.weights[layer.name]);
  }
  if (sample.noise) forward += sample.noise(step);
  const Digest output = DigestOf(forward);
  row.loss_bits = std::bit_cast<std::uint32_t>(1.0F + static_cast<float>(output.bytes[0]) / 256.0F);
  const bool is_full = sample.run.record_level == "full";
  for (std::size_t i = 0; i < sample.layers.size(); ++i) {
    const StepLayer& layer = sample.layers[i];
    const auto id = static_cast<std::int32_t>(i);
    if (layer.kind == StepLayerKind::kCaptured) {
      if (is_full) row.captured.push_back({0, id, DigestOf(forward + std::to_string(i))});
      continue;
    }
    const Digest gradients = DigestOf(ToHex(output) + "gradients" + std::to_string(i));
    Digest& weights = state.weights[layer.name];
    Digest& moments = state.optimizer_state[layer.name];
    weights = DigestOf(ToHex(weights) + ToHex(gradients));
    moments = DigestOf(ToHex(moments) + ToHex(gradients));
    if (sample.run.record_level == "losses") continue;
    StepDigests digests;
    digests.layer = id;
    digests.weights = weights;
    if (layer.kind == StepLayerKind::kParameter) {
      digests.optimizer_state = moments;
      if (is_full && sample.run.spec.gradients) digests.gradients = gradients;
    }
    row.layers.push_back(digests);
  }
  return row;
}

/// Records the run; the path.
inline std::string WriteSteps(const SampleSteps& sample, const std::string& path) {
  auto recorder =
      StepRecorder::Open(path, sample.run, sample.layers, sample.environment, {.overwrite = true});
  VERBATIM_CHECK(recorder.has_value(), "{}", recorder.error().message);
  SampleState state;
  for (const StepLayer& layer : sample.layers) state.weights[layer.name] = layer.initial_digest;
  for (std::int64_t step = sample.first; step < sample.first + sample.steps; ++step) {
    if (sample.before) sample.before(step, state);
    StepRow row = SampleStep(sample, step, state);
    if (sample.after) sample.after(step, row, state);
    if (step % sample.run.spec.every != 0) continue;
    const Status recorded = (*recorder)->Record(std::move(row));
    VERBATIM_CHECK(recorded.has_value(), "{}", recorded.error().message);
  }
  const Status closed = (*recorder)->Close(sample.status, "");
  VERBATIM_CHECK(closed.has_value(), "{}", closed.error().message);
  return path;
}

}  // namespace verbatim
