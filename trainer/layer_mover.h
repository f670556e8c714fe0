// Moves layers between host memory and the stages, where the supernet is larger than what the
// stages' devices may hold: the threads that copy, and what tells them when.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "schedule/layer_cache.h"
#include "schedule/partition.h"
#include "schedule/task.h"
#include "supernet/search_space.h"
#include "trainer/layer_copies.h"
#include "trainer/layer_state.h"
#include "trainer/stage_devices.h"
#include "trainer/stage_probe.h"

namespace verbatim {

struct LayerMoverOptions {
  int stages = 1;
  StagePart part;               ///< those of this process
  const StageDevices& devices;  ///< theirs
  const OpenStream& open_stream;
  std::int64_t budget_bytes = 0;  ///< what each stage may hold of layers
  StageProbe* probe = nullptr;
};

/// Two copy threads per stage, one in each direction, each with a stream of its own. Every decision
/// is the LayerCache's and is made under the owner's lock, which is `mutex`; copies are made
/// without it. But for `copies`, all calls between Start and Stop are made under that lock.
///
/// A transfer is done when its device has done it: its thread waits. So what the cache takes for
/// free is free on the device too, once the readers of frozen layers, which enqueue a few tasks
/// ahead, are past.
class LayerMover {
 public:
  using Lock = std::unique_lock<std::mutex>;
  using OnFailure =
      std::function<void(int stage, Transfer::Kind kind, const std::exception& error)>;

  /// `on_moved`: a transfer has ended, so that parts may have become resident; `on_failure`: the
  /// copy thread of a stage and direction has ended with an exception. Both are called under the
  /// lock. References outlive it.
  LayerMover(const SearchSpace& space, std::vector<LayerState>& layers,
             const LayerMoverOptions& options, std::mutex& mutex, std::function<void()> on_moved,
             OnFailure on_failure);
  /// Stops it.
  ~LayerMover();

  /// Starts the threads; throws std::system_error where the machine has none left.
  void Start();
  /// Without the lock: waits for the copies under way, and ends the threads.
  void Stop();

  /// As LayerCache's.
  void Foresee(std::int64_t seq, std::span<const std::uint16_t> choices, const StageRanges& ranges);
  void Admit(std::int64_t seq) { cache_.Admit(seq, resident_); }
  void Want(const Residency& part) { cache_.Want(part); }
  void Updated(const Residency& part) { cache_.Updated(part, resident_); }
  /// Parts whose layers have come to be on their stages; each is told once.
  std::vector<Residency> TakeResident();
  /// Where the layer's newest version is at home, gives up its copy, so that home's tensors can
  /// leave for another process; HasLeft once they have. False: it is not at home yet.
  bool Release(int layer);
  void HasLeft(int layer) { copies_.Rehouse(layer); }
  /// As LayerCache::Arrived; before the version is put in place. HasCome afterwards.
  [[nodiscard]] bool Arrives(int layer, std::int64_t seq) { return cache_.Arrived(layer, seq); }
  void HasCome(int layer) { copies_.Rehouse(layer); }
  /// Gives the idle copy threads what there is to copy now: after any of the calls above.
  void Dispatch();

  /// No subnet is in flight: has everything written back, waits for it, and gives up all copies, so
  /// that the layers are as without a mover. False: a copy thread has failed.
  bool Settle(Lock& lock);

  const LayerCopies& copies() const { return copies_; }
  const CacheStatistics& statistics() const { return cache_.statistics(); }

 private:
  struct Engine {
    int stage;
    Transfer::Kind kind;
    std::unique_ptr<DeviceStream> stream;  ///< its thread's
    std::optional<Transfer> transfer;      ///< what it copies, or is to
    std::condition_variable wake;
    std::thread thread;
  };

  void Serve(Engine& engine);
  void CopyUntilStopped(Engine& engine);
  void Copy(const Transfer& transfer, DeviceStream& stream);

  const LayerMoverOptions options_;
  std::mutex& mutex_;
  const std::function<void()> on_moved_;
  const OnFailure on_failure_;
  LayerCopies copies_;
  LayerCache cache_;
  std::vector<Residency> resident_;  ///< not taken yet
  std::vector<std::unique_ptr<Engine>> engines_;
  std::condition_variable settled_;  ///< or failed
  bool has_failed_ = false;
  bool is_stopping_ = false;
};

}  // namespace verbatim
