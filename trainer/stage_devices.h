// Which device each stage of a process computes on. Pure.
#pragma once

#include <ATen/core/Tensor.h>

#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "trainer/ranks/launcher.h"

namespace verbatim {

/// The devices of one process and its stages: several stages may share one.
class StageDevices {
 public:
  /// Stages `begin` … `end` - 1, dealt out contiguously and as evenly as it goes: stages of one
  /// device are neighbours, so that few activations leave it. `devices` are distinct and at least
  /// one; those beyond the number of stages stay idle.
  StageDevices(std::span<const at::Device> devices, int begin, int end);

  /// Whether the stage is one of the process's.
  bool Has(int stage) const { return stage >= begin_ && stage - begin_ < std::ssize(of_); }
  /// CHECKs that it is.
  at::Device Of(int stage) const;
  /// Where layers are before and after training, and where subnets are evaluated.
  at::Device home() const { return home_; }

 private:
  at::Device home_;
  int begin_;
  std::vector<at::Device> of_;  ///< from `begin` on
};

/// Those that one of a host's ranks uses, where all of them see the same: an equal share, in order.
/// All of them where there are fewer than ranks: then each rank sees its own.
std::vector<at::Device> ShareOf(std::span<const at::Device> devices, const LocalRank& local);

/// As a record names them: "cpu", "cuda:1", and "cuda" where there are several.
std::string NameOf(std::span<const at::Device> devices);

}  // namespace verbatim
