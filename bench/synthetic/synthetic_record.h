// Records of runs that nobody trained, by the real writer: what a subnet leaves is a hash of what
// it read. Each is sound (`verbatim verify` passes whole) and a function of its options alone, but
// for the time at which it ended.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/status.h"
#include "store/record.h"
#include "supernet/search_space.h"
#include "supernet/spec.h"

namespace verbatim {

struct SyntheticOptions {
  std::int64_t subnets = 1000;
  std::int64_t trained = -1;  ///< how many of them are recorded; -1: all
  int blocks = 46;            ///< and the stem and the head: 48 accesses per subnet
  int candidates = 23;
  int batch = 64;
  int stages = 8;
  int microbatches = 1;
  std::int64_t flipped = -1;  ///< a bit of the weights that this subnet leaves is another one
};

/// The stream of such a run, a subnet at a time.
class SyntheticRun {
 public:
  explicit SyntheticRun(const SyntheticOptions& options);

  const RunInfo& run() const { return run_; }
  const std::vector<LayerRow>& layers() const { return layers_; }
  /// Subnet 0, 1, 2, …
  SubnetRow Next();

 private:
  void AddAccesses(SubnetRow& row, const Digest& activation);
  void AddTasks(SubnetRow& row) const;

  SyntheticOptions options_;
  Spec spec_;
  SearchSpace space_;
  RunInfo run_;
  std::vector<LayerRow> layers_;
  std::vector<Digest> weights_;        // by layer
  std::vector<std::int64_t> version_;  // by layer
  std::int64_t next_ = 0;
};

/// Writes such a record, in transactions of 64 subnets. RecordWriter's errors.
Status WriteSyntheticRecord(const std::filesystem::path& path, const SyntheticOptions& options,
                            bool overwrite = false);

}  // namespace verbatim
