// What is simulated: a spec, a layout and what goes wrong, all drawn from a seed.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "schedule/partition.h"
#include "schedule/placement.h"
#include "schedule/scheduler.h"
#include "supernet/stream.h"
#include "tests/schedule/test_space.h"

namespace verbatim::ranks_test {

/// A rule broken on purpose: the simulation must notice each.
enum class Mutation {
  kNone,
  kVersionBeforeItsState,  ///< a version is announced when it sets out, not when it is there
  kOlderVersion,           ///< a reader gets what the version was before its writer's update
  kLostVersion,            ///< a version never arrives
  kReorderedLinks,         ///< packets between two ranks overtake each other
  kNoWaiting,              ///< subnets start without their predecessors
};

/// What happens to a run that nobody planned.
enum class Trouble { kNone, kCrash, kFailingStage, kStop };

struct RankCase {
  std::uint64_t seed = 0;
  std::unique_ptr<SearchSpace> space;
  std::unique_ptr<Partition> partition;
  Placement placement{1};
  SchedulerOptions options;
  std::vector<std::int64_t> sequence;  ///< ascending
  Mutation mutation = Mutation::kNone;
  Trouble trouble = Trouble::kNone;
  int troubled_rank = 0;
  std::int64_t trouble_at = 0;  ///< in ticks
  std::int64_t peer_timeout = 0;
  std::string description;
};

/// Numbers drawn from a seed, the same everywhere (std's distributions differ between libraries).
class SeededDraws {
 public:
  explicit SeededDraws(std::uint64_t seed) : random_(seed) {}
  /// In [least, most].
  std::int64_t Between(std::int64_t least, std::int64_t most) {
    return least +
           static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(most - least + 1));
  }
  bool OneIn(std::int64_t n) { return Between(1, n) == 1; }

 private:
  std::mt19937_64 random_;
};

inline std::int64_t DrawDelay(SeededDraws& draws) {
  return draws.OneIn(2) ? 0 : draws.OneIn(8) ? 1000 : draws.Between(1, 6);
}

inline BlockSpec DrawBlock(SeededDraws& draws, std::int64_t repeat) {
  BlockSpec block;
  block.repeat = repeat;
  block.trainable = !draws.OneIn(6);
  block.delay = block.trainable ? DrawDelay(draws) : 0;
  const std::int64_t candidates = draws.Between(1, 4);
  block.candidates.assign(static_cast<std::size_t>(candidates),
                          TestOperator(OperatorKind::kLinear));
  if (draws.OneIn(2)) block.candidates.push_back(TestOperator(OperatorKind::kSkip));
  return block;
}

/// Stem, `blocks` choice blocks in groups that are alike, and head; each trained or frozen, with a
/// delay or without.
inline SearchSpace DrawSpace(SeededDraws& draws, std::int64_t blocks) {
  Spec spec;
  spec.training.batch = 4;
  BlockSpec& stem = spec.supernet.stem;
  stem = DrawBlock(draws, 1);
  stem.features = 4;
  stem.candidates = {TestOperator(OperatorKind::kLinear)};
  while (blocks > 0) {
    const std::int64_t repeat = draws.Between(1, std::min<std::int64_t>(blocks, 4));
    spec.supernet.blocks.push_back(DrawBlock(draws, repeat));
    blocks -= repeat;
  }
  BlockSpec& head = spec.supernet.head;
  head = DrawBlock(draws, 1);
  head.candidates = {TestOperator(OperatorKind::kClassifier)};
  Result<SearchSpace> space = SearchSpace::Build(spec, ActivationShape{1, 2, 2}, /*classes=*/3);
  EXPECT_TRUE(space.has_value()) << space.error().message;
  return *std::move(space);
}

inline RankCase DrawCase(std::uint64_t seed, bool has_trouble = false) {
  SeededDraws draws(seed);
  RankCase drawn;
  drawn.seed = seed;
  const int ranks = static_cast<int>(draws.Between(1, 4));
  const std::int64_t stages = draws.Between(ranks, 3 * ranks);
  const std::int64_t blocks = draws.Between(std::max<std::int64_t>(stages - 2, 1), stages + 6);
  drawn.space = std::make_unique<SearchSpace>(DrawSpace(draws, blocks));
  const std::string partition = draws.OneIn(4) ? "equal" : "balanced";
  drawn.partition = *MakePartition(partition, *drawn.space, MakeTestCosts(*drawn.space), stages);
  drawn.placement = *Placement::Make(stages, ranks);
  drawn.options.microbatches = static_cast<std::int32_t>(draws.Between(1, 4));
  drawn.options.in_flight_max = draws.Between(1, 10);
  const std::int64_t stride = draws.OneIn(3) ? 5 : 1;
  for (std::int64_t seq = draws.OneIn(4) ? 17 : 0; std::ssize(drawn.sequence) < 60;
       seq += draws.Between(1, stride)) {
    drawn.sequence.push_back(seq);
  }
  drawn.sequence.resize(static_cast<std::size_t>(draws.Between(20, 60)));
  if (has_trouble) drawn.trouble = static_cast<Trouble>(draws.Between(1, 3));
  drawn.troubled_rank = static_cast<int>(draws.Between(0, ranks - 1));
  drawn.trouble_at = draws.Between(0, 100 * draws.Between(1, 1000));
  drawn.peer_timeout = draws.Between(100, 100'000);
  drawn.description = fmt::format(
      "seed {}: {} ranks, {} stages, {} positions, {} micro-batches, {} in flight, {} subnets, {}",
      seed, ranks, stages, drawn.space->positions(), drawn.options.microbatches,
      drawn.options.in_flight_max, drawn.sequence.size(), partition);
  return drawn;
}

inline Choices ChoicesOf(const RankCase& drawn, std::int64_t seq) {
  return DrawUniformChoices(*drawn.space, RandomKey{drawn.seed, RandomPurpose::kSampler, 0, 0,
                                                    static_cast<std::uint32_t>(seq)});
}

}  // namespace verbatim::ranks_test
