#include "cli/rank_part.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "base/durable_file.h"
#include "base/utc_time.h"

namespace verbatim {
namespace {

namespace fs = std::filesystem;

std::string HostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

/// Whether it holds a subnet. What cannot be read is left as it is.
bool IsEmpty(const fs::path& path) {
  auto reader = PartReader::Open(path);
  if (!reader) return false;
  const auto part = reader->Next();
  return part && !*part;
}

}  // namespace

void AddKeepPartsOption(CLI::App& command, bool& keep) {
  command.add_flag(
      "--keep-parts", keep,
      "On several ranks: each rank but the first keeps its own part of the run, beside "
      "its RUN.db, after the run is complete as well. Example: --keep-parts");
}

Status CheckRankPart(const RankPartRequest& request, int rank) {
  if (request.resumes) return {};
  return PartRecorder::CheckNew(PartPath(request.record, rank), request.force);
}

RankPart::RankPart(fs::path path, int rank, bool keep, std::unique_ptr<PartRecorder> recorder)
    : path_(std::move(path)), rank_(rank), keep_(keep), recorder_(std::move(recorder)) {}

Result<RankPart> RankPart::Begin(const RankPartRequest& request, const std::string& spec_json,
                                 int rank, int ranks) {
  const fs::path path = PartPath(request.record, rank);
  const PartSession session{SpecDigest(spec_json), rank, ranks, HostName(), UtcNow()};
  ASSIGN_OR_RETURN(auto recorder, request.resumes
                                      ? PartRecorder::Reopen(path, session)
                                      : PartRecorder::Create(path, session, request.force));
  return RankPart(path, rank, request.keep, std::move(recorder));
}

Result<std::string> RankPart::End(RunStatus status) {
  RETURN_IF_ERROR(recorder_->Close());
  const bool is_wanted = keep_ || status != RunStatus::kComplete;
  if (is_wanted && !IsEmpty(path_)) {
    return fmt::format("rank {}'s part of the run is in {}", rank_, path_.string());
  }
  RETURN_IF_ERROR(RemoveFile(path_));
  return std::string();
}

}  // namespace verbatim
