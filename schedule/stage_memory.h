// One stage's device memory, as far as layers occupy it: which copies are there, and for which
// layers room is set aside.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

#include "base/check.h"

namespace verbatim {

/// Bookkeeping alone; schedule/layer_cache.h decides. Not thread-safe.
class StageMemory {
 public:
  struct Copy {
    bool is_loading = true;
    bool is_writing = false;    ///< back home
    bool is_dirty = false;      ///< home has an older version
    std::int64_t used_at = -1;  ///< order of its latest use; -1: none since it was loaded

    /// Home has what it holds, and it is not on its way.
    bool IsClean() const { return !is_loading && !is_writing && !is_dirty; }
  };

  /// Of its budget, `permanent` is never free.
  StageMemory(std::int64_t budget_bytes, std::int64_t permanent_bytes)
      : room_(budget_bytes - permanent_bytes), permanent_(permanent_bytes), peak_(permanent_bytes) {
    VERBATIM_CHECK(room_ >= 0, "budget of {} bytes, {} always there", budget_bytes,
                   permanent_bytes);
  }

  const std::map<int, Copy>& copies() const { return copies_; }
  Copy* Find(int layer) {
    const auto copy = copies_.find(layer);
    return copy == copies_.end() ? nullptr : &copy->second;
  }
  Copy& Add(int layer, std::int64_t bytes) {
    const auto [copy, is_new] = copies_.try_emplace(layer);
    VERBATIM_CHECK(is_new && held_ + bytes <= room_, "layer {} of {} bytes", layer, bytes);
    held_ += bytes;
    if (!IsClaimed(layer)) taken_ += bytes;
    peak_ = std::max(peak_, permanent_ + held_);
    return copy->second;
  }
  void Remove(int layer, std::int64_t bytes) {
    VERBATIM_CHECK(copies_.erase(layer) == 1, "layer {}", layer);
    held_ -= bytes;
    if (!IsClaimed(layer)) taken_ -= bytes;
  }

  /// Room for the layer is set aside once more, or once less.
  void Claim(int layer, std::int64_t bytes) {
    if (++claims_[layer] > 1) return;
    set_aside_ += bytes;
    if (!copies_.contains(layer)) taken_ += bytes;
    VERBATIM_CHECK(set_aside_ <= room_);
  }
  void Unclaim(int layer, std::int64_t bytes) {
    if (--claims_.at(layer) > 0) return;
    claims_.erase(layer);
    set_aside_ -= bytes;
    if (!copies_.contains(layer)) taken_ -= bytes;
  }
  bool IsClaimed(int layer) const { return claims_.contains(layer); }

  /// Bytes for copies, at most.
  std::int64_t room() const { return room_; }
  std::int64_t permanent() const { return permanent_; }
  std::int64_t held() const { return held_; }            ///< by copies
  std::int64_t set_aside() const { return set_aside_; }  ///< whether the layers are there or not
  std::int64_t taken() const { return taken_; }          ///< held, set aside, or both
  std::int64_t peak() const { return peak_; }            ///< held and permanent, at most

 private:
  std::map<int, Copy> copies_;  ///< by layer
  std::map<int, int> claims_;   ///< by layer; none is 0
  std::int64_t room_;
  std::int64_t permanent_;
  std::int64_t held_ = 0;
  std::int64_t set_aside_ = 0;
  std::int64_t taken_ = 0;
  std::int64_t peak_;
};

}  // namespace verbatim
