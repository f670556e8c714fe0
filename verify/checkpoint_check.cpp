#include "verify/checkpoint_check.h"

#include <fmt/format.h>

#include <limits>
#include <system_error>

#include "recorder/digest.h"
#include "store/checkpoint_files.h"
#include "store/layer_metadata.h"
#include "store/safetensors.h"
#include "verify/examine.h"
#include "verify/text.h"

namespace verbatim {
namespace {

Digest DigestOf(const StoredTensors& file, const std::vector<std::string>& names) {
  NamedTensorsDigest digest;
  for (const std::string& name : names) {
    const StoredTensor& tensor = *file.Find(name);
    digest.Add(name, DigestTensor({tensor.dtype, tensor.shape, tensor.data.data()}));
  }
  return digest.Finish();
}

std::vector<std::string> WeightNames(const LayerMetadata& metadata) {
  std::vector<std::string> names = metadata.parameters;
  names.insert(names.end(), metadata.buffers.begin(), metadata.buffers.end());
  return names;
}

std::vector<std::string> OptimizerNames(const LayerMetadata& metadata) {
  std::vector<std::string> names;
  for (const std::string& parameter : metadata.parameters) {
    for (const std::string& state : metadata.optimizer) {
      names.push_back(OptimizerTensorName(parameter, state));
    }
  }
  names.emplace_back(kStepTensor);
  return names;
}

Status CompareDigest(const char* what, const Digest& found, const Digest& recorded,
                     const std::string& source) {
  if (found == recorded) return {};
  return BadInput(fmt::format("{} holds other {} than were recorded (digest {}, recorded {})",
                              source, what, ToShortHex(found), ToShortHex(recorded)));
}

}  // namespace

CheckpointCheck::CheckpointCheck(const LayerTable& table, std::vector<CheckpointRow> checkpoints,
                                 std::filesystem::path folder)
    : table_(table),
      checkpoints_(std::move(checkpoints)),
      folder_(std::move(folder)),
      check_(PassedCheck(kCheckCheckpoints)) {
  for (const LayerRow& layer : table.layers()) newest_.push_back({-1, layer.initial_digest, {}});
}

void CheckpointCheck::Add(const SubnetRow& subnet) {
  if (next_cut_ == checkpoints_.size()) return;
  if (subnet.seq >= checkpoints_[next_cut_].cut) PassCuts(subnet.seq);
  if (subnet.seq == subnets_) ++subnets_;
  for (const AccessRow& access : subnet.accesses) {
    if (access.layer < 0 || access.layer >= std::ssize(newest_)) continue;
    newest_[access.layer] = {subnet.seq, access.weights, access.optimizer_state};
  }
}

void CheckpointCheck::PassCuts(std::int64_t seq) {
  while (next_cut_ < checkpoints_.size() && checkpoints_[next_cut_].cut <= seq) {
    CheckVersions(checkpoints_[next_cut_++]);
  }
}

void CheckpointCheck::CheckVersions(const CheckpointRow& checkpoint) {
  if (subnets_ < checkpoint.cut) {
    return Damage(checkpoint, fmt::format("the checkpoint at {} is of subnets that are not "
                                          "recorded: subnet {} is missing",
                                          checkpoint.cut, subnets_));
  }
  if (checkpoint.layers.size() != newest_.size()) {
    return Damage(checkpoint,
                  fmt::format("the checkpoint at {} has {} layers of {}", checkpoint.cut,
                              checkpoint.layers.size(), newest_.size()));
  }
  for (const LayerRow& layer : table_.layers()) {
    const CheckpointLayer& stored = checkpoint.layers[layer.layer];
    const Version& newest = newest_[layer.layer];
    if (stored.version != newest.seq) {
      Damage(checkpoint, fmt::format("the checkpoint at {} has {} at version {} instead of {}",
                                     checkpoint.cut, layer.name, stored.version, newest.seq));
      continue;
    }
    expected_.emplace(std::pair(stored.file, layer.layer), newest);
  }
}

void CheckpointCheck::Damage(const CheckpointRow& checkpoint, const std::string& problem) {
  AddDamage(check_, problem);
  unsound_.emplace(checkpoint.cut, problem);
}

Check CheckpointCheck::Finish() {
  PassCuts(std::numeric_limits<std::int64_t>::max());
  if (checkpoints_.empty()) {
    check_.detail = "the record has none";
    return std::move(check_);
  }
  std::error_code error;
  if (!std::filesystem::exists(folder_, error) && !error) {
    // The record is the evidence; checkpoints are there to go on from.
    if (check_.outcome == Outcome::kPassed) check_.outcome = Outcome::kNotRun;
    check_.detail = fmt::format("{} is not there", folder_.filename().string());
    return std::move(check_);
  }
  for (const auto& [place, version] : expected_) CheckFile(place.first, place.second, version);
  check_.detail =
      fmt::format("{}, {}", FormatCount(std::ssize(checkpoints_), "checkpoint", "checkpoints"),
                  FormatCount(std::ssize(expected_), "file", "files"));
  return std::move(check_);
}

void CheckpointCheck::CheckFile(const Hash256& file, std::int32_t layer, const Version& version) {
  const Status compared = CompareFile(file, layer, version);
  if (compared) return;
  AddDamage(check_, compared.error().message);
  for (const CheckpointRow& checkpoint : checkpoints_) {
    if (layer >= std::ssize(checkpoint.layers) || checkpoint.layers[layer].file != file) continue;
    unsound_.emplace(checkpoint.cut, compared.error().message);
  }
}

Status CheckpointCheck::CompareFile(const Hash256& file, std::int32_t layer,
                                    const Version& version) const {
  const std::string source = (folder_ / CheckpointFileName(file)).string();
  ASSIGN_OR_RETURN(const std::string bytes, ReadCheckpointFile(folder_, file));
  ASSIGN_OR_RETURN(const StoredTensors stored, ParseSafetensors(bytes, source));
  ASSIGN_OR_RETURN(const LayerMetadata metadata, ReadLayerMetadata(stored, source));
  const LayerRow& row = table_.layer(layer);
  if (metadata.layer != row.name || metadata.version != version.seq ||
      metadata.has_step != row.versioned) {
    return BadInput(fmt::format("{} holds {} at version {} instead of {} at version {}", source,
                                metadata.layer, metadata.version, row.name, version.seq));
  }
  if (version.weights) {
    RETURN_IF_ERROR(CompareDigest("weights", DigestOf(stored, WeightNames(metadata)),
                                  *version.weights, source));
  }
  if (version.optimizer_state) {
    RETURN_IF_ERROR(CompareDigest("optimizer state", DigestOf(stored, OptimizerNames(metadata)),
                                  *version.optimizer_state, source));
  }
  return {};
}

}  // namespace verbatim
