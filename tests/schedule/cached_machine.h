// Stages with little memory: the scheduler of real runs and a cache of layers, driven by an
// interleaving drawn from a seed, with versions for weights. Whatever a cache promises is checked.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schedule/causal_graph.h"
#include "schedule/layer_cache.h"
#include "schedule/placement.h"
#include "schedule/scheduler.h"
#include "tests/schedule/ranks/rank_case.h"

namespace verbatim {

using ranks_test::SeededDraws;

struct CachedCase {
  std::uint64_t seed = 0;
  std::unique_ptr<SearchSpace> space;
  std::unique_ptr<Partition> partition;
  std::vector<LayerBytes> bytes;
  SchedulerOptions scheduler;
  LayerCacheOptions cache;
  std::int64_t window = 0;             ///< subnets foreseen beyond those admitted
  std::vector<std::int64_t> sequence;  ///< ascending
  std::int64_t transfer_weight = 1;    ///< how soon a transfer ends, beside other events
  int ranks = 1;                       ///< each with a cache, and a home, of its own
  std::string description;
};

inline Choices ChoicesOf(const CachedCase& drawn, std::int64_t seq) {
  return DrawUniformChoices(*drawn.space, RandomKey{drawn.seed, RandomPurpose::kSampler, 0, 0,
                                                    static_cast<std::uint32_t>(seq)});
}

inline LeastDeviceMemory LeastOf(const CachedCase& drawn) {
  LeastDeviceMemory least(*drawn.space, drawn.bytes, drawn.partition->stages());
  for (const std::int64_t seq : drawn.sequence) {
    const Choices choices = ChoicesOf(drawn, seq);
    least.Add(choices, drawn.partition->Ranges(choices));
  }
  return least;
}

inline CachedCase DrawCachedCase(std::uint64_t seed) {
  SeededDraws draws(seed);
  CachedCase drawn;
  drawn.seed = seed;
  const std::int64_t stages = draws.Between(1, 5);
  const std::int64_t blocks = draws.Between(std::max<std::int64_t>(stages - 2, 1), stages + 6);
  drawn.space = std::make_unique<SearchSpace>(ranks_test::DrawSpace(draws, blocks));
  const std::string partition = draws.OneIn(4) ? "equal" : "balanced";
  drawn.partition = *MakePartition(partition, *drawn.space, MakeTestCosts(*drawn.space), stages);
  for (const Layer& layer : drawn.space->layers()) {
    const bool is_empty = layer.parameters.empty();
    drawn.bytes.push_back(
        {is_empty ? 0 : draws.Between(1, 20), is_empty ? 0 : draws.Between(0, 20)});
  }
  drawn.scheduler = {static_cast<std::int32_t>(draws.Between(1, 4)), draws.Between(1, 10),
                     /*gates_residency=*/true};
  const std::int64_t stride = draws.OneIn(3) ? 5 : 1;
  std::int64_t seq = draws.OneIn(4) ? 17 : 0;
  for (std::int64_t n = draws.Between(20, 60); n > 0; --n) {
    drawn.sequence.push_back(seq);
    seq += draws.Between(1, stride);
  }
  drawn.window = draws.OneIn(3) ? 0 : draws.Between(1, 70);
  drawn.cache.policy = static_cast<CachePolicy>(draws.Between(0, 2));
  const std::int64_t least = LeastOf(drawn).bytes();
  drawn.cache.budget_bytes = draws.OneIn(3) ? least : least + draws.Between(1, 400);
  drawn.transfer_weight = draws.OneIn(2) ? 1 : draws.Between(1, 20);
  drawn.ranks = draws.OneIn(2) ? 1 : static_cast<int>(draws.Between(1, stages));
  drawn.description = fmt::format(
      "seed {}: {} ranks, {} stages, {} positions, {} micro-batches, {} in flight, {} subnets, {}, "
      "{}, {} "
      "bytes of at least {}",
      seed, drawn.ranks, stages, drawn.space->positions(), drawn.scheduler.microbatches,
      drawn.scheduler.in_flight_max, drawn.sequence.size(), partition, NameOf(drawn.cache.policy),
      drawn.cache.budget_bytes, least);
  return drawn;
}

/// Runs a case. What is wrong is an EXPECT's failure.
class CachedMachine {
 public:
  explicit CachedMachine(const CachedCase& drawn)
      : case_(drawn),
        space_(*drawn.space),
        policy_(*MakePolicy("causal")),
        draws_(drawn.seed + 1),
        scheduler_(space_, *drawn.partition, *policy_, drawn.scheduler),
        placement_(*Placement::Make(drawn.partition->stages(), drawn.ranks)),
        graph_(space_),
        stages_(static_cast<std::size_t>(drawn.partition->stages())) {
    for (int rank = 0; rank < drawn.ranks; ++rank) {
      const StagePart part{placement_.Begin(rank), placement_.End(rank)};
      caches_.emplace_back(space_, drawn.bytes, placement_.stages(), part, drawn.cache);
      homes_.emplace_back(space_.layers().size(), CausalPredecessors::kNone);
    }
  }

  /// False where it gets stuck.
  bool Run() {
    while (true) {
      while (scheduler_.CanAdmit() && admitted_ < case_.sequence.size()) Admit();
      if (scheduler_.in_flight() == 0) return Settle();
      // Whoever is idle may take a while to look.
      StartSome();
      if (!HappenOne()) {
        StartAll();
        if (!HappenOne()) return false;
      }
    }
  }

  const CacheStatistics& statistics() const { return caches_.front().statistics(); }
  std::int64_t finished() const { return finished_; }

 private:
  struct Held {
    std::int64_t version;
    bool is_loading;
  };
  struct Stage {
    std::map<int, Held> copies;  ///< by layer
    std::optional<Task> running;
    std::optional<Transfer> engines[2];  ///< by kind
    std::set<std::int64_t> resident;     ///< subnets
  };
  struct Subnet {
    std::vector<std::vector<std::pair<int, std::int64_t>>> reads;  ///< by stage: layer, version
  };

  /// What home has of a layer whose newest version has left for another rank.
  static constexpr std::int64_t kAway = -2;

  bool IsVersioned(int layer) const { return space_.layer(layer).IsVersioned(); }
  LayerCache& CacheOf(int stage) { return caches_[placement_.RankOf(stage)]; }
  std::int64_t& HomeOf(int stage, int layer) { return homes_[placement_.RankOf(stage)][layer]; }

  void Foresee(std::int64_t seq) {
    const Choices choices = ChoicesOf(case_, seq);
    const StageRanges ranges = case_.partition->Ranges(choices);
    for (LayerCache& cache : caches_) cache.Foresee(seq, choices, ranges);
    const auto predecessors = graph_.Add(seq, choices);
    Subnet& subnet = subnets_[seq];
    subnet.reads.resize(stages_.size());
    for (int position = 0; position < space_.positions(); ++position) {
      const Layer& layer = space_.LayerAt(position, choices);
      if (IsPermanent(layer) || case_.bytes[layer.id].total() == 0) continue;
      const std::int64_t version = IsVersioned(layer.id) ? predecessors[position].read : -1;
      subnet.reads[ranges.StageOf(position)].emplace_back(layer.id, version);
    }
  }

  void Admit() {
    const std::size_t last = admitted_ + 1 + static_cast<std::size_t>(case_.window);
    while (foreseen_ < std::min(last, case_.sequence.size())) Foresee(case_.sequence[foreseen_++]);
    const std::int64_t seq = case_.sequence[admitted_++];
    std::vector<Delivery> deliveries;
    scheduler_.Admit(seq, ChoicesOf(case_, seq), deliveries);
    SendAll(deliveries);
    for (LayerCache& cache : caches_) {
      Tell([&](auto& ready) { cache.Admit(seq, ready); });
    }
  }

  void SendAll(const std::vector<Delivery>& deliveries) {
    for (const Delivery& delivery : deliveries) {
      const bool leaves = delivery.kind == Delivery::Kind::kVersion &&
                          placement_.RankOf(delivery.from) != placement_.RankOf(delivery.to) &&
                          !IsPermanent(space_.layer(delivery.layer));
      (leaves ? leaving_ : under_way_).push_back(delivery);
    }
    SendLeaving();
  }

  /// Versions for other ranks set out once they are at home.
  void SendLeaving() {
    std::erase_if(leaving_, [this](const Delivery& delivery) {
      LayerCache& cache = CacheOf(delivery.from);
      if (!cache.IsAtHome(delivery.layer)) return false;
      if (const auto dropped = cache.Left(delivery.layer)) Drop(*dropped);
      std::int64_t& home = HomeOf(delivery.from, delivery.layer);
      EXPECT_EQ(home, delivery.version) << "layer " << delivery.layer;
      home = kAway;
      under_way_.push_back(delivery);
      return true;
    });
  }

  void ComeHome(const Delivery& delivery) {
    const bool has_moved = delivery.kind == Delivery::Kind::kVersion &&
                           placement_.RankOf(delivery.from) != placement_.RankOf(delivery.to) &&
                           !IsPermanent(space_.layer(delivery.layer));
    if (!has_moved) return;
    HomeOf(delivery.to, delivery.layer) = delivery.version;
    EXPECT_FALSE(CacheOf(delivery.to).Arrived(delivery.layer, delivery.task.seq + 1000));
    EXPECT_TRUE(CacheOf(delivery.to).Arrived(delivery.layer, delivery.task.seq));
  }

  /// A call of the cache's, and what follows for the scheduler.
  template <typename Call>
  void Tell(const Call& call) {
    std::vector<Residency> ready;
    call(ready);
    for (const Residency& part : ready) {
      EXPECT_TRUE(stages_[part.stage].resident.insert(part.seq).second) << "once per part";
      CheckPart(part.seq, part.stage);
      scheduler_.Resident(part);
    }
    for (const Residency& part : scheduler_.TakeWanted()) CacheOf(part.stage).Want(part);
    SendLeaving();
  }

  /// Every layer of the part is there, in the right version, and is not being copied.
  void CheckPart(std::int64_t seq, int index) {
    const Stage& stage = stages_[index];
    EXPECT_TRUE(stage.resident.contains(seq)) << seq << " on " << index;
    for (const auto& [layer, version] : subnets_.at(seq).reads[index]) {
      const auto copy = stage.copies.find(layer);
      ASSERT_TRUE(copy != stage.copies.end()) << "layer " << layer << " for " << seq;
      EXPECT_FALSE(copy->second.is_loading);
      EXPECT_EQ(copy->second.version, version) << "layer " << layer << " for " << seq;
      const auto& writing = stage.engines[1];
      EXPECT_FALSE(writing && writing->layer == layer) << "layer " << layer << " for " << seq;
    }
  }

  void StartSome() {
    for (int stage = 0; stage < static_cast<int>(stages_.size()); ++stage) {
      if (!draws_.OneIn(3)) StartTask(stage);
      for (const int kind : {0, 1}) {
        if (!draws_.OneIn(4)) StartTransfer(stage, kind);
      }
    }
  }

  void StartAll() {
    for (int stage = 0; stage < static_cast<int>(stages_.size()); ++stage) {
      StartTask(stage);
      for (const int kind : {1, 0}) StartTransfer(stage, kind);
    }
  }

  void StartTask(int index) {
    Stage& stage = stages_[index];
    if (stage.running) return;
    stage.running = scheduler_.Next(index);
    if (stage.running) CheckPart(stage.running->seq, index);
  }

  void StartTransfer(int index, int kind) {
    auto& engine = stages_[index].engines[kind];
    if (engine) return;
    engine = CacheOf(index).Next(index, static_cast<Transfer::Kind>(kind));
    if (!engine) return;
    for (const LayerCopy& dropped : engine->dropped) Drop(dropped);
    if (kind == 0) {
      EXPECT_FALSE(IsBeingWritten(engine->layer));
      EXPECT_FALSE(IsVersioned(engine->layer) && IsAnywhere(engine->layer));
      const std::int64_t home = HomeOf(index, engine->layer);
      EXPECT_NE(home, kAway) << "layer " << engine->layer;
      stages_[index].copies[engine->layer] = {home, /*is_loading=*/true};
    } else {
      EXPECT_TRUE(IsVersioned(engine->layer));
      EXPECT_FALSE(IsInUse(index, engine->layer));
    }
    CheckBudget(index);
  }

  void Drop(const LayerCopy& copy) {
    auto& copies = stages_[copy.stage].copies;
    const auto held = copies.find(copy.layer);
    ASSERT_TRUE(held != copies.end());
    EXPECT_FALSE(held->second.is_loading);
    EXPECT_EQ(held->second.version, HomeOf(copy.stage, copy.layer)) << "an update would be lost";
    EXPECT_FALSE(IsInUse(copy.stage, copy.layer));
    copies.erase(held);
  }

  bool IsAnywhere(int layer) const {
    for (const Stage& stage : stages_) {
      if (stage.copies.contains(layer)) return true;
    }
    return false;
  }
  bool IsBeingWritten(int layer) const {
    for (const Stage& stage : stages_) {
      if (stage.engines[1] && stage.engines[1]->layer == layer) return true;
    }
    return false;
  }
  bool IsInUse(int index, int layer) const {
    for (const std::int64_t seq : stages_[index].resident) {
      for (const auto& [used, version] : subnets_.at(seq).reads[index]) {
        if (used == layer) return true;
      }
    }
    return false;
  }

  void CheckBudget(int index) {
    std::int64_t bytes =
        PermanentBytes(space_, case_.bytes, index, static_cast<int>(stages_.size()));
    for (const auto& [layer, copy] : stages_[index].copies) bytes += case_.bytes[layer].total();
    EXPECT_LE(bytes, case_.cache.budget_bytes);
    EXPECT_EQ(bytes, CacheOf(index).HeldBytes(index));
    EXPECT_LE(bytes, CacheOf(index).statistics().peak_bytes[index]);
  }

  /// One of the events under way, drawn; false where there is none.
  bool HappenOne() {
    std::vector<std::pair<int, int>> events;  // what, stage
    for (int stage = 0; stage < static_cast<int>(stages_.size()); ++stage) {
      if (stages_[stage].running) events.insert(events.end(), 4, {2, stage});
      for (const int kind : {0, 1}) {
        if (!stages_[stage].engines[kind]) continue;
        events.insert(events.end(), static_cast<std::size_t>(case_.transfer_weight), {kind, stage});
      }
    }
    if (!under_way_.empty()) events.insert(events.end(), 4, {3, 0});
    if (events.empty()) return false;
    const auto [what, stage] = events[static_cast<std::size_t>(
        draws_.Between(0, static_cast<std::int64_t>(events.size()) - 1))];
    if (what == 3) {
      Arrive();
    } else if (what == 2) {
      FinishTask(stage);
    } else {
      FinishTransfer(stage, what);
    }
    return true;
  }

  /// What set out first between two stages, drawn: links keep their order.
  void Arrive() {
    auto delivery = under_way_.begin() + draws_.Between(0, std::ssize(under_way_) - 1);
    const auto is_same_link = [link = *delivery](const Delivery& other) {
      return other.from == link.from && other.to == link.to;
    };
    delivery = std::find_if(under_way_.begin(), under_way_.end(), is_same_link);
    const Delivery arrived = *delivery;
    under_way_.erase(delivery);
    ComeHome(arrived);
    Tell([&](auto&) { scheduler_.Deliver(arrived); });
  }

  void FinishTask(int index) {
    const Task task = *std::exchange(stages_[index].running, std::nullopt);
    CheckPart(task.seq, index);
    if (task.kind == TaskKind::kUpdate) {
      for (const auto& [layer, version] : subnets_.at(task.seq).reads[index]) {
        if (IsVersioned(layer)) stages_[index].copies.at(layer).version = task.seq;
      }
      stages_[index].resident.erase(task.seq);
      Tell([&](auto& ready) { CacheOf(index).Updated({task.seq, index}, ready); });
    }
    std::vector<Delivery> deliveries;
    if (scheduler_.Finished(index, task, deliveries)) ++finished_;
    SendAll(deliveries);
    Tell([](auto&) {});
  }

  void FinishTransfer(int index, int kind) {
    const Transfer transfer = *std::exchange(stages_[index].engines[kind], std::nullopt);
    Held& copy = stages_[index].copies.at(transfer.layer);
    if (kind == 0) {
      EXPECT_EQ(copy.version, HomeOf(index, transfer.layer)) << "written while it was read";
      copy.is_loading = false;
    } else {
      HomeOf(index, transfer.layer) = copy.version;
    }
    Tell([&](auto& ready) { CacheOf(index).Finished(transfer, ready); });
  }

  /// Everything comes home, whole.
  bool Settle() {
    EXPECT_EQ(static_cast<std::size_t>(finished_), case_.sequence.size());
    EXPECT_TRUE(leaving_.empty() && under_way_.empty());
    for (LayerCache& cache : caches_) cache.Settle();
    while (!std::ranges::all_of(caches_, &LayerCache::IsSettled)) {
      StartAll();
      if (!HappenOne()) return false;
    }
    for (LayerCache& cache : caches_) {
      for (const LayerCopy& dropped : cache.DropAll()) Drop(dropped);
    }
    for (const Layer& layer : space_.layers()) EXPECT_FALSE(IsAnywhere(layer.id));
    std::vector<std::int64_t> last(space_.layers().size(), CausalPredecessors::kNone);
    std::vector<std::int64_t> newest = last;
    for (const auto& [seq, subnet] : subnets_) {
      for (const auto& part : subnet.reads) {
        for (const auto& [layer, version] : part) last[layer] = IsVersioned(layer) ? seq : -1;
      }
    }
    for (const std::vector<std::int64_t>& home : homes_) {
      for (std::size_t layer = 0; layer < home.size(); ++layer) {
        newest[layer] = std::max(newest[layer], home[layer]);
      }
    }
    EXPECT_EQ(newest, last);
    return true;
  }

  const CachedCase& case_;
  const SearchSpace& space_;
  const std::unique_ptr<Policy> policy_;
  SeededDraws draws_;
  Scheduler scheduler_;
  const Placement placement_;
  std::vector<LayerCache> caches_;  ///< by rank
  CausalGraph graph_;
  std::vector<std::vector<std::int64_t>> homes_;  ///< by rank and layer: seq that wrote its version
  std::vector<Stage> stages_;
  std::map<std::int64_t, Subnet> subnets_;
  std::vector<Delivery> leaving_;  ///< not at home yet
  std::vector<Delivery> under_way_;
  std::size_t foreseen_ = 0;
  std::size_t admitted_ = 0;
  std::int64_t finished_ = 0;
};

}  // namespace verbatim
