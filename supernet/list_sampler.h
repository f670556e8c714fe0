// Sampler `list`: the subnets of a file, in its order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "supernet/sampler.h"
#include "supernet/spec.h"

namespace verbatim {

/// Reads the choices of a list file's text (docs/spec.md, "Stream"), entry after entry:
/// `candidates` holds the number of candidates by block, and the result entries · blocks choices.
/// Reads no further than `entries`. BadInput names `source` and the entry, counted from 0, where
/// one is malformed or chooses what does not exist, or where there are fewer than `entries`.
Result<std::vector<std::uint16_t>> ReadChoices(std::string_view text, const std::string& source,
                                               const std::vector<std::uint32_t>& candidates,
                                               std::int64_t entries);

/// Reads the choices of the file that `spec`, whose sampler is `list` or reorders one, names
/// relative to `spec_folder`, one entry per subnet of its training. BadInput as ReadChoices and
/// ReadTextFile.
Result<std::vector<std::uint16_t>> ReadListedChoices(const Spec& spec,
                                                     const std::filesystem::path& spec_folder);

/// Holds all choices in memory, two bytes each.
class ListSampler : public Sampler {
 public:
  ListSampler(std::vector<std::uint16_t> choices, std::size_t blocks)
      : choices_(std::move(choices)), blocks_(blocks) {}
  /// seq is below the number of entries.
  Choices Draw(std::int64_t seq) const override;

 private:
  std::vector<std::uint16_t> choices_;
  std::size_t blocks_;
};

}  // namespace verbatim
