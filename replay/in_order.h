// Hands finished subnets on in ascending seq: with several in flight a later one may finish first.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "store/record.h"

namespace verbatim {

/// Holds at most as many subnets as are in flight. Not thread-safe.
class InOrder {
 public:
  /// Returns whether it wants more.
  using Sink = std::function<bool(SubnetRow&&)>;

  /// `sequence`: which subnets come, ascending; must outlive it.
  InOrder(const std::vector<std::int64_t>& sequence, Sink sink)
      : sequence_(sequence), sink_(std::move(sink)) {}

  /// Takes a subnet of the sequence, each once. Whether the sink wants more.
  bool Add(SubnetRow&& row) {
    const std::int64_t seq = row.seq;
    const bool is_new = waiting_.emplace(seq, std::move(row)).second;
    VERBATIM_CHECK(is_new, "subnet {} finished twice", seq);
    while (goes_on_ && !waiting_.empty() && waiting_.begin()->first == sequence_[next_]) {
      goes_on_ = sink_(std::move(waiting_.begin()->second));
      waiting_.erase(waiting_.begin());
      ++next_;
    }
    return goes_on_;
  }
  bool goes_on() const { return goes_on_; }

 private:
  const std::vector<std::int64_t>& sequence_;
  Sink sink_;
  std::map<std::int64_t, SubnetRow> waiting_;
  std::size_t next_ = 0;
  bool goes_on_ = true;
};

}  // namespace verbatim
