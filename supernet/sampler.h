// Samplers: which subnets a stream holds, in which order (docs/spec.md, "Stream").
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <vector>

#include "base/keyed_random.h"
#include "base/status.h"
#include "supernet/choice_space.h"
#include "supernet/spec.h"

namespace verbatim {

/// One candidate per choice block, in block order.
using Choices = std::vector<std::uint16_t>;

/// Draws subnets. A pure function of seq: may be asked in any order, from any thread.
class Sampler {
 public:
  virtual ~Sampler() = default;
  virtual Choices Draw(std::int64_t seq) const = 0;
};

/// The sampler that the spec names, over the blocks that it lays out. `spec_folder` is where
/// relative file names start. BadInput where a `list` file is malformed, chooses a candidate that
/// does not exist or is too short.
Result<std::unique_ptr<Sampler>> MakeSampler(const Spec& spec, const ChoiceSpace& space,
                                             const std::filesystem::path& spec_folder);

/// Uniform choices under any key: the draw of sampler `uniform` and of evaluated subnets.
Choices DrawUniformChoices(const ChoiceSpace& space, const RandomKey& key);

/// A sampler whose draws follow from those before them: it keeps the latest, and begins again where
/// an older one is asked, which takes as long as all draws up to that one.
class SequentialSampler : public Sampler {
 public:
  static constexpr std::size_t kKept = 4096;

  Choices Draw(std::int64_t seq) const final;

 protected:
  /// Called by one thread at a time. Restart, then Next gives subnet 0, 1, 2, …
  virtual void Restart() const = 0;
  virtual Choices Next() const = 0;

 private:
  mutable std::mutex mutex_;
  mutable std::deque<Choices> kept_;  ///< up to the newest
  mutable std::int64_t drawn_ = -1;   ///< subnets since Restart; -1: not begun
};

}  // namespace verbatim
