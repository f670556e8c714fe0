#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.h"
#include "digest_value.h"
#include "raise.h"
#include "recorder/step_recorder.h"
#include "settings_of.h"

namespace nb = nanobind;

namespace verbatim::python {
namespace {

using MaybeBytes = std::optional<nb::bytes>;
/// kind, name, dtype, shape, placement, also, initial digest
using LayerTuple = std::tuple<std::string, std::string, std::string, std::vector<std::int64_t>,
                              std::string, std::vector<std::string>, MaybeBytes>;
/// layer, weights, optimizer state, gradients
using DigestsTuple = std::tuple<std::int32_t, MaybeBytes, MaybeBytes, MaybeBytes>;
/// layer, occurrence, digest
using CapturedTuple = std::tuple<std::int32_t, std::int32_t, nb::bytes>;

std::optional<Digest> MaybeDigestOf(const MaybeBytes& value) {
  if (!value) return std::nullopt;
  return DigestOf(*value);
}

StepLayer LayerOf(LayerTuple&& tuple) {
  auto& [kind, name, dtype, shape, placement, also, initial] = tuple;
  StepLayer layer;
  layer.kind = kind == "parameter" ? StepLayerKind::kParameter
               : kind == "buffer"  ? StepLayerKind::kBuffer
                                   : StepLayerKind::kCaptured;
  layer.name = std::move(name);
  if (layer.kind != StepLayerKind::kCaptured) {
    const std::optional<DType> known = DTypeFromName(dtype);
    if (!known) {
      Raise({ErrorKind::kUsage, "layer " + layer.name + " is of element type " + dtype,
             "Such tensors cannot be digested: leave it out."});
    }
    layer.dtype = *known;
  }
  layer.shape = std::move(shape);
  layer.placement = std::move(placement);
  layer.also = std::move(also);
  if (initial) layer.initial_digest = DigestOf(*initial);
  return layer;
}

// The recorder with what its callers in Python need around it: no lock is held while it waits.
class Recording {
 public:
  explicit Recording(std::unique_ptr<StepRecorder> recorder) : recorder_(std::move(recorder)) {}

  ~Recording() {
    nb::gil_scoped_release unlocked;
    recorder_.reset();
  }

  void Record(StepRow&& row) {
    Status status;
    {
      nb::gil_scoped_release unlocked;
      status = recorder_->Record(std::move(row));
    }
    RaiseIfError(status);
  }

  void Close(RunStatus status_of_run, const std::string& detail) {
    Status status;
    {
      nb::gil_scoped_release unlocked;
      status = recorder_->Close(status_of_run, detail);
    }
    RaiseIfError(status);
  }

 private:
  std::unique_ptr<StepRecorder> recorder_;
};

std::unique_ptr<Recording> Open(const std::string& path, const std::string& name,
                                std::optional<std::uint64_t> seed, std::int64_t every,
                                std::int64_t rank, std::int64_t world_size, bool optimizer_state,
                                bool gradients, const nb::dict& settings, const std::string& level,
                                const std::string& folder, const std::string& command_line,
                                const std::string& device, std::int64_t steps_planned,
                                std::vector<LayerTuple> layer_tuples,
                                const std::map<std::string, std::string>& environment,
                                bool overwrite) {
  StepRun run;
  run.spec = {
      name, seed, every, rank, world_size, optimizer_state, gradients, SettingsOf(settings)};
  run.record_level = level;
  run.tool_version = VERBATIM_VERSION;
  run.folder = folder;
  run.command_line = command_line;
  run.device = device;
  run.steps_planned = steps_planned;
  std::vector<StepLayer> layers;
  for (LayerTuple& tuple : layer_tuples) layers.push_back(LayerOf(std::move(tuple)));
  std::vector<EnvironmentRow> facts;
  for (const auto& [key, value] : environment) facts.push_back({key, value});
  Result<std::unique_ptr<StepRecorder>> recorder;
  {
    nb::gil_scoped_release unlocked;
    recorder = StepRecorder::Open(path, run, layers, facts, {.overwrite = overwrite});
  }
  return std::make_unique<Recording>(ValueOrRaise(std::move(recorder)));
}

void Record(Recording& recording, std::int64_t step, std::optional<std::uint32_t> loss_bits,
            const MaybeBytes& batch, const std::vector<nb::bytes>& parts,
            const MaybeBytes& random_state, const nb::dict& settings,
            std::vector<std::int32_t> outside, const std::vector<DigestsTuple>& layers,
            const std::vector<CapturedTuple>& captured) {
  StepRow row;
  row.facts.step = step;
  row.facts.random_state = MaybeDigestOf(random_state);
  row.facts.settings = SettingsOf(settings);
  row.facts.outside = std::move(outside);
  for (const nb::bytes& part : parts) row.facts.parts.push_back(DigestOf(part));
  row.loss_bits = loss_bits;
  row.batch = MaybeDigestOf(batch);
  row.layers.reserve(layers.size());
  for (const auto& [layer, weights, optimizer_state, gradients] : layers) {
    row.layers.push_back(
        {layer, MaybeDigestOf(weights), MaybeDigestOf(optimizer_state), MaybeDigestOf(gradients)});
  }
  for (const auto& [layer, occurrence, digest] : captured) {
    row.captured.push_back({occurrence, layer, DigestOf(digest)});
  }
  recording.Record(std::move(row));
}

void Close(Recording& recording, const std::string& status, const std::string& detail) {
  for (const RunStatus known :
       {RunStatus::kComplete, RunStatus::kInterrupted, RunStatus::kFailed}) {
    if (status == ToString(known)) return recording.Close(known, detail);
  }
  Raise({ErrorKind::kUsage, "a run does not end as \"" + status + "\"",
         "Close it as complete, interrupted or failed."});
}

}  // namespace

void BindRecorder(nb::module_& module) {
  nb::class_<Recording>(module, "Recording")
      .def("record", &Record, nb::kw_only(), nb::arg("step"), nb::arg("loss_bits").none(),
           nb::arg("batch").none(), nb::arg("parts"), nb::arg("random_state").none(),
           nb::arg("settings"), nb::arg("outside"), nb::arg("layers"), nb::arg("captured"))
      .def("close", &Close, nb::arg("status"), nb::arg("detail"));
  module.def("open_recording", &Open, nb::arg("path"), nb::kw_only(), nb::arg("name"),
             nb::arg("seed").none(), nb::arg("every"), nb::arg("rank"), nb::arg("world_size"),
             nb::arg("optimizer_state"), nb::arg("gradients"), nb::arg("settings"),
             nb::arg("level"), nb::arg("folder"), nb::arg("command_line"), nb::arg("device"),
             nb::arg("steps_planned"), nb::arg("layers"), nb::arg("environment"),
             nb::arg("overwrite"));
}

}  // namespace verbatim::python
