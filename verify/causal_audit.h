// The causal audit: does every access read, and write on, the version that its causal predecessor
// left: in a layer with delay d, does subnet j read what the greatest i < j - d left that uses the
// layer, and write on what the greatest i < j left? Decided from the versions that the run
// observed, so it finds a broken schedule from the record alone. Source of the criterion: causal
// synchronous parallel training (NASPipe, ASPLOS'22, section 3); an exact rule for every layer
// instead of a property of a scheduler. It keeps its own account of who used a layer last, apart
// from CausalGraph: with the scheduler's code it would share the scheduler's mistakes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/record.h"

namespace verbatim {

/// An access that observed another version than its causal predecessor's.
struct CausalViolation {
  enum class Kind {
    kRead,  ///< the forward pass read it
    kBase,  ///< the update was applied to it
  };
  Kind kind = Kind::kRead;
  std::int64_t seq = 0;
  std::int32_t layer = 0;
  std::int32_t stage = 0;
  std::int64_t observed = -1;  ///< seq that wrote the version; -1: the initial weights
  std::int64_t expected = -1;  ///< the causal predecessor; -1: there is none
  std::int64_t delay = 0;      ///< of the layer
};

/// Streams over subnets; time O(1) per access. Memory is a number per layer and, for a layer with a
/// delay, one per use within the delay.
class CausalAudit {
 public:
  /// `delays` by layer.
  explicit CausalAudit(const std::vector<std::int64_t>& delays);

  /// Subnets 0, 1, 2, … in order, with their accesses in ascending layer; layers are below the
  /// constructor's number.
  void Visit(const SubnetRow& subnet);

  std::int64_t subnets() const { return subnets_; }
  std::int64_t accesses() const { return accesses_; }
  /// Violated reads plus violated bases.
  std::int64_t violations() const { return violations_; }
  /// Subnets with at least one violation of their own.
  std::int64_t subnets_affected() const { return subnets_affected_; }
  bool has_delays() const { return has_delays_; }
  /// Lowest seq, then lowest position, then read before base.
  const std::optional<CausalViolation>& first() const { return first_; }

 private:
  struct Layer {
    std::int64_t delay = 0;
    std::int64_t readable = -1;          ///< greatest seq that is old enough to be read, or -1
    std::int64_t newest = -1;            ///< greatest seq so far that uses it, or -1
    std::deque<std::int64_t> too_young;  ///< the uses after `readable`; empty without a delay
  };

  void Check(CausalViolation::Kind kind, std::int64_t seq, const AccessRow& access,
             std::int64_t observed, std::int64_t expected);
  std::int64_t ReadableBy(std::int64_t seq, Layer& layer);

  std::vector<Layer> layers_;
  bool has_delays_ = false;
  std::int64_t subnets_ = 0;
  std::int64_t accesses_ = 0;
  std::int64_t violations_ = 0;
  std::int64_t subnets_affected_ = 0;
  std::optional<CausalViolation> first_;
};

/// "subnet 12 read block3.1 at version 7 on stage 1; its causal predecessor is subnet 10"; where
/// the layer has a delay, "…; with delay 4 its read predecessor is subnet 6".
std::string Describe(const CausalViolation& violation, std::string_view layer_name);

}  // namespace verbatim
