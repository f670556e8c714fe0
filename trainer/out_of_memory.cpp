#include "trainer/out_of_memory.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <new>
#include <string_view>
#include <vector>

#include "base/exception_text.h"

namespace verbatim {
namespace {

/// Options that make a stage hold less, those that help most first.
std::string Advice(const TrainingOptions& options) {
  std::vector<std::string> less;
  if (options.device_memory) {
    less.push_back(fmt::format("a smaller --device-memory than {}", *options.device_memory));
  } else {
    less.emplace_back("--device-memory BYTES (some of the layers only)");
  }
  if (options.in_flight > 1) {
    less.push_back(fmt::format("fewer subnets than --in-flight {}", options.in_flight));
  }
  if (options.recompute != "all") less.emplace_back("--recompute all (fewer activations)");
  return fmt::format("to hold less: {}", fmt::join(less, ", "));
}

}  // namespace

bool IsOutOfMemory(const std::exception& error) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  // LibTorch's allocator for the CPU throws nothing more special than a c10::Error.
  const std::string_view text = error.what();
  return text.find("DefaultCPUAllocator: can't allocate memory") != text.npos ||
         text.find("DefaultCPUAllocator: not enough memory") != text.npos;
}

std::string StageFailure(int stage, const std::optional<Task>& task, const std::exception& error,
                         const TrainingOptions& options) {
  const std::string text = ExceptionText(error);
  if (!IsOutOfMemory(error)) return fmt::format("stage {}: {}", stage, text);
  const std::string where = task ? fmt::format(", {} of subnet {}, micro-batch {}",
                                               NameOf(task->kind), task->seq, task->microbatch)
                                 : "";
  return fmt::format("stage {}{}: out of memory: {}; {}", stage, where, text, Advice(options));
}

std::string MoveFailure(int stage, Transfer::Kind kind, const std::exception& error,
                        const TrainingOptions& options) {
  const bool is_load = kind == Transfer::Kind::kLoad;
  const std::string text =
      fmt::format("stage {}, moving layers {}: ", stage, is_load ? "in" : "out");
  if (!IsOutOfMemory(error)) return text + ExceptionText(error);
  return fmt::format("{}out of memory: {}; {}", text, ExceptionText(error), Advice(options));
}

}  // namespace verbatim
