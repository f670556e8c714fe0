#include "verify/html/neighbourhood.h"

#include <algorithm>
#include <map>
#include <set>

namespace verbatim {
namespace {

/// The layers whose versions a subnet saw, by the subnet that wrote those.
using Seen = std::map<std::int64_t, std::vector<std::int32_t>>;

Seen SeenBy(const SubnetRow& subnet) {
  Seen seen;
  for (const AccessRow& access : subnet.accesses) {
    if (access.read_seq >= 0) seen[access.read_seq].push_back(access.layer);
    const bool is_other = access.base_seq >= 0 && access.base_seq != access.read_seq;
    if (is_other) seen[access.base_seq].push_back(access.layer);
  }
  return seen;
}

class NeighbourhoodSearch {
 public:
  NeighbourhoodSearch(const RecordReader& reader, const std::vector<LayerRow>& layers)
      : reader_(reader), layers_(layers) {}

  Status Run(std::int64_t seq);
  Neighbourhood Finish(const Verdict& verdict);

 private:
  Status AddPredecessors(int level);
  Status AddSuccessors();
  bool Has(std::int64_t seq) const { return level_.contains(seq); }
  /// Whether there was room, or the subnet was there already.
  bool Place(std::int64_t seq, int level);
  void AddEdges(const SubnetRow& subnet);
  std::string Name(std::int32_t layer) const;

  const RecordReader& reader_;
  const std::vector<LayerRow>& layers_;
  Neighbourhood result_;
  std::map<std::int64_t, int> level_;  ///< by seq
  std::map<int, std::size_t> placed_;  ///< by level
};

bool NeighbourhoodSearch::Place(std::int64_t seq, int level) {
  if (Has(seq)) return true;
  if (placed_[level] >= Neighbourhood::kShownPerLevel) {
    result_.complete = false;
    return false;
  }
  ++placed_[level];
  level_[seq] = level;
  return true;
}

std::string NeighbourhoodSearch::Name(std::int32_t layer) const {
  const auto index = static_cast<std::size_t>(layer);
  return index < layers_.size() ? layers_[index].name : "layer " + std::to_string(layer);
}

void NeighbourhoodSearch::AddEdges(const SubnetRow& subnet) {
  const auto to = level_.find(subnet.seq);
  if (to == level_.end()) return;
  for (const auto& [writer, layers] : SeenBy(subnet)) {
    const auto from = level_.find(writer);
    if (from == level_.end() || from->second != to->second - 1) continue;
    NeighbourEdge edge{writer, subnet.seq, {}};
    for (const std::int32_t layer : layers) edge.layers.push_back(Name(layer));
    result_.edges.push_back(std::move(edge));
  }
}

/// Those of the subnets at `level` + 1, the nearest first.
Status NeighbourhoodSearch::AddPredecessors(int level) {
  std::vector<SubnetRow> readers;
  for (const auto& [seq, at] : level_) {
    if (at != level + 1) continue;
    ASSIGN_OR_RETURN(auto subnet, reader_.Subnet(seq, {true, false, false}));
    if (subnet) readers.push_back(*std::move(subnet));
  }
  std::set<std::int64_t, std::greater<>> writers;
  for (const SubnetRow& reader : readers) {
    for (const auto& [writer, layers] : SeenBy(reader)) writers.insert(writer);
  }
  for (const std::int64_t writer : writers) Place(writer, level);
  for (const SubnetRow& reader : readers) AddEdges(reader);
  return {};
}

Status NeighbourhoodSearch::AddSuccessors() {
  const auto is_full = [&](int level) { return placed_[level] >= Neighbourhood::kShownPerLevel; };
  for (std::int64_t ahead = 1; ahead <= Neighbourhood::kLookAhead; ++ahead) {
    if (is_full(1) && is_full(2)) break;
    ASSIGN_OR_RETURN(const auto subnet, reader_.Subnet(result_.seq + ahead, {true, false, false}));
    if (!subnet) break;
    int level = 3;
    for (const auto& [writer, layers] : SeenBy(*subnet)) {
      const auto from = level_.find(writer);
      if (from != level_.end() && from->second >= 0) level = std::min(level, from->second + 1);
    }
    if (level <= 2 && Place(subnet->seq, level)) AddEdges(*subnet);
  }
  return {};
}

Status NeighbourhoodSearch::Run(std::int64_t seq) {
  result_.seq = seq;
  ASSIGN_OR_RETURN(const auto subnet, reader_.Subnet(seq, {false, false, false}));
  if (!subnet) return {};
  level_[seq] = 0;
  RETURN_IF_ERROR(AddPredecessors(-1));
  RETURN_IF_ERROR(AddPredecessors(-2));
  return AddSuccessors();
}

Neighbourhood NeighbourhoodSearch::Finish(const Verdict& verdict) {
  for (const auto& [seq, level] : level_) {
    result_.nodes.push_back({seq, level, EqualityOf(verdict, seq)});
  }
  return std::move(result_);
}

}  // namespace

Equality EqualityOf(const Verdict& verdict, std::int64_t seq) {
  if (!verdict.comparison) {
    const auto& difference = verdict.first_difference;
    if (difference && difference->seq == seq) return Equality::kOrigin;
    // Of a part that was drawn, the number that was equal does not tell which.
    const bool in_order =
        verdict.reexecuted && verdict.coverage.executed == verdict.coverage.recorded;
    return in_order && seq < verdict.counts.subnets_reexecuted ? Equality::kEqual
                                                               : Equality::kNotCompared;
  }
  const Comparison& comparison = *verdict.comparison;
  for (const SeqRange& range : comparison.tainted) {
    if (range.first <= seq && seq <= range.last) return Equality::kTainted;
  }
  for (const Difference& origin : comparison.origins) {
    if (origin.seq == seq) return Equality::kOrigin;
  }
  // Beyond the last origin that was kept, one that was not cannot be told from an equal subnet.
  const bool all_kept = comparison.origin_count == std::ssize(comparison.origins);
  const bool is_known = all_kept || seq < comparison.origins.back().seq.value_or(0);
  return is_known && seq < comparison.subnets_compared ? Equality::kEqual : Equality::kNotCompared;
}

Result<Neighbourhood> ReadNeighbourhood(const RecordReader& reader,
                                        const std::vector<LayerRow>& layers, const Verdict& verdict,
                                        std::int64_t seq) {
  NeighbourhoodSearch search(reader, layers);
  RETURN_IF_ERROR(search.Run(seq));
  return search.Finish(verdict);
}

}  // namespace verbatim
