#include "recorder/c/verbatim_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>

#include "recorder/c/convert.h"

struct verbatim_recorder {
  std::unique_ptr<verbatim::StepRecorder> steps;
  std::vector<verbatim::StepLayer> layers;
};

namespace {

using namespace verbatim;     // NOLINT
using namespace verbatim::c;  // NOLINT

thread_local Error last_error{ErrorKind::kUsage, "", ""};
/// Where even the message finds no memory.
thread_local bool has_no_memory = false;

/// Runs `body`, keeps what is wrong for verbatim_message, and lets nothing be thrown.
template <typename Body>
int AtBoundary(const Body& body) noexcept {
  try {
    const Status status = body();
    if (status) return VERBATIM_OK;
    has_no_memory = false;
    last_error = status.error();
    return ExitCode(last_error.kind);
  } catch (const std::exception& error) {
    try {
      has_no_memory = false;
      last_error = Error{ErrorKind::kFailed, fmt::format("failed: {}", error.what()), ""};
    } catch (...) {
      has_no_memory = true;
    }
  } catch (...) {
    has_no_memory = true;
  }
  return VERBATIM_FAILED;
}

Status CheckGiven(const void* pointer, const char* what) {
  if (pointer != nullptr) return {};
  return UsageError(fmt::format("{} is null", what));
}

void Put(const Digest& digest, verbatim_digest* out) {
  std::copy(digest.bytes.begin(), digest.bytes.end(), out->bytes);
}

Result<RunStatus> StatusOf(int end) {
  switch (end) {
    case VERBATIM_COMPLETE:
      return RunStatus::kComplete;
    case VERBATIM_INTERRUPTED:
      return RunStatus::kInterrupted;
    case VERBATIM_ERROR:
      return RunStatus::kFailed;
  }
  return UsageError(fmt::format("a run cannot end with {}", end));
}

/// The layer's tensor over the caller's bytes.
Result<TensorView> TensorOf(const verbatim_recorder& recorder, std::int32_t index, const void* data,
                            std::size_t bytes) {
  if (index < 0 || index >= std::ssize(recorder.layers)) {
    return UsageError(fmt::format("there is no layer {}", index));
  }
  const StepLayer& layer = recorder.layers[static_cast<std::size_t>(index)];
  if (layer.kind == StepLayerKind::kCaptured) {
    return UsageError(
        fmt::format("layer '{}' is captured, and has no shape of its own", layer.name),
        "use verbatim_digest_tensor");
  }
  std::size_t expected = 0;
  TensorBytes(layer.dtype, layer.shape.data(), layer.shape.size(), &expected);
  if (bytes != expected) {
    return UsageError(fmt::format("layer '{}' has {} bytes, of {} when the recorder was opened",
                                  layer.name, bytes, expected),
                      "a tensor's shape cannot change: open another record");
  }
  if (expected > 0) RETURN_IF_ERROR(CheckGiven(data, "data"));
  return TensorView{layer.dtype, layer.shape, data};
}

template <typename Struct>
void Init(Struct* given, std::size_t struct_bytes, const Struct& defaults) {
  if (given == nullptr) return;
  std::memcpy(static_cast<void*>(given), &defaults, std::min(struct_bytes, sizeof defaults));
}

}  // namespace

const char* verbatim_version(void) {
  return kLibraryVersion;
}

const char* verbatim_message(void) {
  return has_no_memory ? "failed: no memory is left" : last_error.message.c_str();
}

const char* verbatim_hint(void) {
  return has_no_memory ? "" : last_error.hint.c_str();
}

void verbatim_run_init(verbatim_run* run, size_t struct_bytes) {
  verbatim_run defaults = {};
  defaults.struct_bytes = struct_bytes;
  defaults.every = defaults.world_size = 1;
  defaults.record_level = "weights";
  defaults.optimizer_state = 1;
  defaults.device = "cpu";
  Init(run, struct_bytes, defaults);
}

void verbatim_step_init(verbatim_step* step, size_t struct_bytes) {
  verbatim_step defaults = {};
  defaults.struct_bytes = struct_bytes;
  Init(step, struct_bytes, defaults);
}

int verbatim_digest_tensor(const verbatim_tensor* tensor, verbatim_digest* digest) {
  return AtBoundary([&]() -> Status {
    RETURN_IF_ERROR(CheckGiven(tensor, "tensor"));
    RETURN_IF_ERROR(CheckGiven(digest, "digest"));
    ASSIGN_OR_RETURN(const TensorView view, ConvertTensor(*tensor));
    Put(DigestTensor(view), digest);
    return {};
  });
}

int verbatim_digest_tensors(const verbatim_tensor* tensors, size_t count, verbatim_digest* digest) {
  return AtBoundary([&]() -> Status {
    if (count > 0) RETURN_IF_ERROR(CheckGiven(tensors, "tensors"));
    RETURN_IF_ERROR(CheckGiven(digest, "digest"));
    NamedTensorsDigest named;
    for (std::size_t i = 0; i < count; ++i) {
      ASSIGN_OR_RETURN(const TensorView view, ConvertTensor(tensors[i]));
      named.Add(Text(tensors[i].name), DigestTensor(view));
    }
    Put(named.Finish(), digest);
    return {};
  });
}

int verbatim_recorder_open(const char* path, const verbatim_run* run, const verbatim_layer* layers,
                           size_t layer_count, verbatim_recorder** recorder) {
  return AtBoundary([&]() -> Status {
    RETURN_IF_ERROR(CheckGiven(recorder, "recorder"));
    *recorder = nullptr;
    RETURN_IF_ERROR(CheckGiven(path, "path"));
    ASSIGN_OR_RETURN(const RunParts parts, ConvertRun(run));
    auto opened = std::make_unique<verbatim_recorder>();
    ASSIGN_OR_RETURN(opened->layers, ConvertLayers(layers, layer_count));
    ASSIGN_OR_RETURN(opened->steps, StepRecorder::Open(path, parts.run, opened->layers,
                                                       parts.environment, parts.options));
    *recorder = opened.release();
    return {};
  });
}

int verbatim_recorder_digest(const verbatim_recorder* recorder, int32_t layer, const void* data,
                             size_t bytes, verbatim_digest* digest) {
  return AtBoundary([&]() -> Status {
    RETURN_IF_ERROR(CheckGiven(recorder, "recorder"));
    RETURN_IF_ERROR(CheckGiven(digest, "digest"));
    ASSIGN_OR_RETURN(const TensorView view, TensorOf(*recorder, layer, data, bytes));
    Put(DigestTensor(view), digest);
    return {};
  });
}

int verbatim_recorder_record(verbatim_recorder* recorder, const verbatim_step* step) {
  return AtBoundary([&]() -> Status {
    RETURN_IF_ERROR(CheckGiven(recorder, "recorder"));
    ASSIGN_OR_RETURN(StepRow row, ConvertStep(step));
    return recorder->steps->Record(std::move(row));
  });
}

int verbatim_recorder_close(verbatim_recorder* recorder, int end, const char* detail) {
  return AtBoundary([&]() -> Status {
    RETURN_IF_ERROR(CheckGiven(recorder, "recorder"));
    ASSIGN_OR_RETURN(const RunStatus status, StatusOf(end));
    return recorder->steps->Close(status, Text(detail));
  });
}

void verbatim_recorder_free(verbatim_recorder* recorder) {
  AtBoundary([&]() -> Status {
    delete recorder;
    return {};
  });
}
