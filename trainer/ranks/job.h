// What rank 0 tells the others to do: everything about a run that each of them must know alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace verbatim {

/// Handed out by Join. Ranks other than 0 take it instead of their own command line.
struct RankJob {
  std::string spec_json;    ///< effective spec (SpecToJson)
  std::string spec_folder;  ///< where its relative paths start, unless a rank has its own
  std::string device;       ///< "cpu", "cuda"
  /// Of rank 0's data set, in hexadecimal digits: all ranks have to have it. Empty: not compared.
  std::string dataset_digest;
  std::int64_t threads_per_stage = 1;
  std::int64_t stages = 1;
  std::int64_t in_flight = 4;
  std::string partition = "balanced";
  std::string costs_json;  ///< a cost table to balance by; empty: counted operations
  std::string recompute = "none";
  std::optional<std::int64_t> device_memory;  ///< TrainingOptions::device_memory
  std::string policy = "causal";
  std::string record_level = "weights";
  bool is_observed = true;  ///< whether ranks digest what they do and report it to rank 0
  bool stop_on_nan = true;
  std::optional<std::vector<std::int64_t>> sequence;  ///< TrainingOptions::sequence
  std::int64_t first = 0;                             ///< TrainingOptions::first
  std::int64_t begin_ns = 0;                          ///< TrainingOptions::begin_ns
  bool has_checkpoints = false;
  std::int64_t checkpoint_every = 0;  ///< CheckpointSettings::every
  /// That rank 0 begins with layers that it has loaded, and sends them to all.
  bool sends_layers = false;
  bool operator==(const RankJob&) const = default;
};

std::string ToJson(const RankJob& job);
/// kBadInput where it is none: another version of the program, or a stranger.
Result<RankJob> ParseRankJob(const std::string& json);

}  // namespace verbatim
