// The file in which a rank other than 0 keeps its own part of a run that is recorded, as `train`
// and `resume` handle it.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "base/status.h"
#include "recorder/part_recorder.h"
#include "store/record.h"

namespace verbatim {

struct RankPartRequest {
  std::filesystem::path record;  ///< as typed on this rank; its part is beside that
  bool resumes = false;          ///< goes on with what an earlier process of the run left
  bool force = false;            ///< a new run: in place of an earlier one's part
  bool keep = false;             ///< of a complete run too
};

/// `--keep-parts`.
void AddKeepPartsOption(CLI::App& command, bool& keep);

/// What can be known before the ranks meet: kUsage where a new run would find an old part.
Status CheckRankPart(const RankPartRequest& request, int rank);

/// From before a rank's training until after it.
class RankPart {
 public:
  /// `spec_json`: the run's effective spec, as its record has it. PartRecorder's errors.
  static Result<RankPart> Begin(const RankPartRequest& request, const std::string& spec_json,
                                int rank, int ranks);

  PartSink& sink() { return *recorder_; }
  /// Closes the file. It is removed where the run is complete, unless it is to be kept, and where
  /// there is nothing in it. Returns what to tell: "rank 1's part of the run is in run.db.rank-1",
  /// or nothing. Call once.
  Result<std::string> End(RunStatus status);

 private:
  RankPart(std::filesystem::path path, int rank, bool keep, std::unique_ptr<PartRecorder> recorder);

  std::filesystem::path path_;
  int rank_;
  bool keep_;
  std::unique_ptr<PartRecorder> recorder_;
};

}  // namespace verbatim
