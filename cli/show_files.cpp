#include "cli/show_files.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "cli/version.h"
#include "recorder/content_digest.h"
#include "store/proof.h"
#include "verify/examine.h"
#include "verify/head_check.h"
#include "verify/html/render_html.h"
#include "verify/text.h"
#include "verify/trace.h"

namespace verbatim {

namespace fs = std::filesystem;

namespace {

/// What to prove against: the largest of the heads, or without files the record as it is.
Result<ProvenTree> TreeToProve(const RecordReader& reader, const std::vector<fs::path>& files) {
  if (files.empty()) {
    ASSIGN_OR_RETURN(const Head now, reader.HeadNow());
    return TreeOf(now);
  }
  ASSIGN_OR_RETURN(const std::vector<KeptHead> heads, ReadKeptHeads(files));
  std::optional<Head> newest;
  for (const KeptHead& kept : heads) {
    if (!newest || kept.head.subnets >= newest->subnets) newest = kept.head;
  }
  return TreeOf(*newest);
}

}  // namespace

Status ShowHtml(const RecordReader& reader, const fs::path& record, const OutputOption& output) {
  const Verdict verdict = ExamineRecord(reader, record.string());
  return WriteResult(RenderHtml(verdict, reader, nullptr, ToolVersion()), output);
}

Status ShowTrace(const RecordReader& reader, const fs::path& record, const OutputOption& output) {
  return WriteOutput(
      output, [&](const TextSink& write) { return WriteTrace(reader, record.string(), write); });
}

Status ShowProof(const RecordReader& reader, const fs::path& record, std::int64_t seq,
                 const std::vector<fs::path>& heads, const OutputOption& output) {
  ASSIGN_OR_RETURN(const ProvenTree tree, TreeToProve(reader, heads));
  ASSIGN_OR_RETURN(const std::int64_t recorded, reader.TreeSize());
  if (seq >= tree.subnets) {
    return UsageError(fmt::format("subnet {} is not under the head, which has {}", seq,
                                  FormatCount(tree.subnets, "subnet", "subnets")),
                      "Subnets are counted from 0. A newer head has more of them.");
  }
  ASSIGN_OR_RETURN(const auto subnet, reader.Subnet(seq, {true, true, false}));
  std::optional<SubnetProof> proof;
  if (subnet && tree.subnets <= recorded) {
    ASSIGN_OR_RETURN(proof,
                     ProveSubnet(seq, EncodeSubnetContent(*subnet), tree, reader.ContentTree()));
  }
  if (!proof || !Holds(*proof)) {
    return BadInput(
        fmt::format("{} does not bear out that subnet {} is under the head", record.string(), seq),
        fmt::format("The record was changed, or the head is another run's: verbatim "
                    "verify {}{}",
                    ShellPath(record.string()),
                    heads.empty() ? "" : " --head " + ShellPath(heads[0].string())));
  }
  return WriteResult(ProofToJson(*proof), output);
}

}  // namespace verbatim
