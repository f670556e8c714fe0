// Which layers are on which stage's device, where the supernet is larger than device memory: what
// is loaded next, what is given up for it, and when a subnet may begin. Without threads, clocks or
// tensors, so that the trainer drives it with copy threads and a simulator under a virtual clock.
//
// The supernet's home is host memory. A stage holds layers in a bounded part of its device's
// memory: it loads them from home, and writes back what a subnet has updated.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "schedule/device_memory.h"
#include "schedule/partition.h"
#include "schedule/stage_memory.h"
#include "schedule/task.h"
#include "supernet/search_space.h"

namespace verbatim {

enum class CachePolicy {
  /// Loads ahead of need, in the order of need, and gives up the layer whose next use on the stage
  /// lies furthest ahead (Belady, IBM Systems Journal 5(2), 1966): the stream is known. What is
  /// loaded ahead takes the place of nothing that is needed sooner, and further ahead than for the
  /// next subnet only that of what is not needed again.
  kLookAhead,
  kOnDemand,  ///< gives up likewise, but loads for a subnet only once it could start otherwise
  kLru,       ///< on demand, and gives up the layer that was used least recently
};

/// "lookahead", "on-demand", "lru" (`--cache`). kUsage for another name.
Result<CachePolicy> ParseCachePolicy(std::string_view name);
std::string_view NameOf(CachePolicy policy);
std::vector<std::string> CachePolicyNames();

struct LayerCacheOptions {
  /// What each stage may hold of layers: parameters, buffers and optimizer state. At least
  /// LeastDeviceMemory of the stream.
  std::int64_t budget_bytes = 0;
  CachePolicy policy = CachePolicy::kLookAhead;
};

/// A layer on a stage.
struct LayerCopy {
  int stage = 0;
  int layer = 0;
  bool operator==(const LayerCopy&) const = default;
};

/// What a stage's copy engine does: it copies one layer's parameters, buffers and optimizer state.
struct Transfer {
  enum class Kind {
    kLoad,       ///< from home to the stage
    kWriteBack,  ///< from the stage to home; the copy on the stage stays
  };
  Kind kind = Kind::kLoad;
  int stage = 0;
  int layer = 0;
  std::int64_t bytes = 0;
  /// kLoad: copies that are given up before it begins: for room on `stage`, or the layer's own
  /// copy on another stage. Home has what they hold, and nobody uses them.
  std::vector<LayerCopy> dropped;
};

struct CacheStatistics {
  /// Layers of subnets' parts, in place or not when the part was wanted.
  std::int64_t hits = 0;
  std::int64_t misses = 0;
  std::int64_t loads = 0;  ///< begun
  std::int64_t bytes_loaded = 0;
  std::int64_t bytes_written = 0;
  std::vector<std::int64_t> peak_bytes;  ///< by stage, with what is always there

  double HitRate() const;
  bool operator==(const CacheStatistics&) const = default;
};

/// All stages of one process. Not thread-safe: the caller locks. `space` must outlive it.
///
/// Of a run in several processes it serves those of one; each has a home of its own. It knows where
/// else subnets use a layer: a version that is used elsewhere next is written back, and leaves for
/// there from home (Left); one that was written elsewhere comes home (Arrived) before it is loaded.
///
/// The caller, in this order: Foresee subnets; Admit one when the scheduler does; take Next for
/// every idle copy engine, of which each stage has one in each direction, after any other call;
/// report Finished; give each Residency that is handed out to Scheduler::Resident; Want what
/// Scheduler::TakeWanted names; report Updated when the update task has been executed, before
/// Scheduler::Finished.
///
/// What holds:
/// - A layer that subnets write is at any moment live in one place, on one stage or at home. One
///   that nobody writes may have copies on several stages, which are never written back.
/// - Layers with a delay take no part: they are always where they are used (PermanentBytes).
/// - A stage sets memory aside for admitted subnets in seq order, for the whole part of each, and
///   what is set aside stays so until Updated. The lowest unfinished subnet therefore always has
///   room, on all stages, and nothing can deadlock.
/// - A layer is loaded for a subnet once its causal predecessor's version is at home.
/// - After Updated a layer is written back at once, unless an admitted subnet uses it next on the
///   same stage; then only where there is no other way to make room.
/// - While a layer is being written back nobody begins to use it.
/// - What leaves is at home, and its copy is given up.
/// - Given up are only copies that nobody uses, for which nothing is set aside, and whose content
///   is at home.
///
/// A decision costs O(layers of a part + copies on the stage); memory is that of the subnets known.
class LayerCache {
 public:
  /// `bytes` by layer id.
  LayerCache(const SearchSpace& space, std::vector<LayerBytes> bytes, int stages,
             const LayerCacheOptions& options);
  /// Of `stages` stages it serves those of `part`.
  LayerCache(const SearchSpace& space, std::vector<LayerBytes> bytes, int stages,
             const StagePart& part, const LayerCacheOptions& options);

  /// A subnet that will be admitted, of a higher seq than all before; as far ahead as the owner
  /// likes: a window of some dozens is enough.
  void Foresee(std::int64_t seq, std::span<const std::uint16_t> choices, const StageRanges& ranges);
  /// The lowest subnet that was foreseen and not admitted. Appends to `ready` parts of subnets
  /// whose layers are all on the stage, and stay there until Updated. Every part of every admitted
  /// subnet is handed out once, by this call or a later one.
  void Admit(std::int64_t seq, std::vector<Residency>& ready);
  /// Nothing but its layers keeps the subnet's part from starting. Once per part; counts hits.
  void Want(const Residency& part);
  /// The subnet has updated its layers on the stage, and uses them no more.
  void Updated(const Residency& part, std::vector<Residency>& ready);

  /// Whether home has the layer's newest version: else it cannot leave yet.
  bool IsAtHome(int layer) const;
  /// Home's version has left for a subnet on a stage that is none of these, which is the next one
  /// to use it. Gives up the copy here, if there is one.
  std::optional<LayerCopy> Left(int layer);
  /// The version that subnet `seq`, which was foreseen, uses on one of these stages has come home
  /// from elsewhere. False: no subnet of this run waits for it.
  [[nodiscard]] bool Arrived(int layer, std::int64_t seq);

  /// What the stage's idle copy engine does now, if anything.
  std::optional<Transfer> Next(int stage, Transfer::Kind kind);
  /// A transfer taken from Next is done.
  void Finished(const Transfer& transfer, std::vector<Residency>& ready);

  /// No admitted subnet is unfinished: all that has changed is to be written back, and nothing is
  /// loaded until the next Admit.
  void Settle();
  /// Everything is at home, and no transfer is under way.
  bool IsSettled() const;
  /// Once settled: gives up every copy, and says which there were.
  std::vector<LayerCopy> DropAll();

  /// Whether memory is set aside for an unfinished part; else it waits for room.
  bool IsSetAside(const Residency& part) const;
  /// Of layers, now; with what is always there.
  std::int64_t HeldBytes(int stage) const;
  const CacheStatistics& statistics() const { return statistics_; }

 private:
  struct Use {
    std::int64_t seq;
    int stage;
  };
  /// A subnet's part on one stage.
  struct Part {
    std::vector<int> layers;  ///< without those of no bytes and the permanent ones
    bool is_wanted = false;
    bool is_set_aside = false;
    bool is_given = false;  ///< handed out as a Residency
    bool is_updated = false;
  };
  struct Subnet {
    std::int64_t ordinal = 0;  ///< among the subnets foreseen
    std::vector<Part> parts;   ///< by stage
    int parts_unfinished = 0;
    bool is_admitted = false;
  };
  struct Stage {
    StageMemory memory;
    std::deque<std::int64_t> waiting;  ///< admitted, not set aside; ascending
    /// (seq, layer) of what could be loaded now, if there is room: each absent layer for its next
    /// use here.
    std::set<std::pair<std::int64_t, int>> needs;
    bool is_loading = false;
    bool is_writing = false;
  };
  struct LayerState {
    /// Known and not updated; ascending. Of several in a row that are none of these stages', the
    /// first.
    std::deque<Use> uses;
    int stage = -1;                     ///< versioned: where its copy is; -1: it has none
    std::map<int, std::int64_t> needs;  ///< its own in those of the stages: seq by stage
  };

  bool IsVersioned(int layer) const { return space_.layer(layer).IsVersioned(); }
  std::int64_t BytesOf(int layer) const { return bytes_[layer].total(); }
  Part& PartOf(const Residency& part) { return subnets_.at(part.seq).parts[part.stage]; }
  /// The next use of a copy on the stage; nothing where none is known, or where another stage has
  /// to write the layer first.
  std::optional<std::int64_t> NextUse(int layer, int stage) const;
  bool IsInPlace(int layer, const Residency& part);
  void ForeseeElsewhere(const Use& use, const Layer& layer);
  void SetAside(int stage, std::vector<Residency>& ready);
  void Give(const Residency& part, std::vector<Residency>& ready);
  void GiveNextUser(int layer, int stage, std::vector<Residency>& ready);
  /// Whether the layer may be loaded for a part, as the policy has it.
  bool IsDue(const Residency& part);
  /// The part that the layer could be loaded for on the stage.
  std::optional<std::int64_t> NeedOf(int layer, int stage);
  /// Brings the stage's needs up to date with the layer.
  void Review(int layer, int stage);
  void ReviewNextUser(int layer);
  /// Copies to give up so that a layer can be loaded for a part; nothing where that has to wait.
  std::optional<std::vector<int>> Victims(int stage, int layer, std::int64_t seq);
  bool GoesBefore(int stage, int a, int b);
  void Drop(int stage, int layer, std::vector<LayerCopy>& dropped);
  std::optional<Transfer> NextLoad(int stage);
  std::optional<Transfer> NextWriteBack(int stage);
  /// How urgently a changed copy is to be written back, least first; nothing: not now.
  std::optional<std::pair<int, std::int64_t>> WriteUrgency(int stage, int layer);
  /// Whether what is needed here waits for room that only writing back can make.
  bool IsShort(int stage);

  const SearchSpace& space_;
  const std::vector<LayerBytes> bytes_;  ///< by layer
  const StagePart part_;
  const CachePolicy policy_;
  std::vector<Stage> stages_;               ///< all of them; those of the part are used
  std::vector<LayerState> layers_;          ///< by layer
  std::map<std::int64_t, Subnet> subnets_;  ///< known, and unfinished
  std::int64_t foreseen_ = 0;               ///< subnets
  std::int64_t admitted_ = 0;               ///< likewise
  std::int64_t last_foreseen_ = -1;
  std::int64_t last_admitted_ = -1;
  std::int64_t uses_made_ = 0;
  bool is_settling_ = false;
  CacheStatistics statistics_;
};

}  // namespace verbatim
