// Whether a record is the one that heads kept elsewhere were made of (docs/format.md, "Heads").
// Whoever changes, cuts or replaces a record can make it agree with itself again, but not with
// them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "store/head.h"
#include "store/reader.h"
#include "verify/verdict.h"

namespace verbatim {

inline constexpr const char* kCheckHeads = "heads";

/// A head and the file that it is from, for messages.
struct KeptHead {
  Head head;
  std::string file;
};

/// "the head of 300 subnets of 2026-01-31T12:00:00Z in run.head".
std::string Describe(const KeptHead& kept);

/// The heads of all files, in order.
Result<std::vector<KeptHead>> ReadKeptHeads(const std::vector<std::filesystem::path>& files);

/// Where a record is not what a head says.
struct HeadMismatch {
  std::string problem;  ///< "the head of …: its tail was cut: it holds 250 of the 300 subnets"
  std::string what;     ///< "content root of 300 subnets"
  std::string recorded;
  std::string expected;
  std::optional<std::int64_t> seq;  ///< the subnet, where it is known
};

/// At most one per head, in the order of `heads`: signature (with a key), start, subnets, both
/// roots, circumstances, end. Trees are taken as the record stores them: that they are those of its
/// rows is for ExamineRecord to say. Errors are the reader's.
Result<std::vector<HeadMismatch>> CompareWithHeads(const RecordReader& reader,
                                                   const std::vector<KeptHead>& heads,
                                                   const std::optional<PublicKey>& key);

/// Adds the check "heads" to a verdict of ExamineRecord, before its last one. A mismatch becomes
/// its first difference, of class kForged. Without one the check of a damaged record is "not run":
/// the heads agree with its trees, which do not agree with its rows.
void AddHeadCheck(const RecordReader& reader, const std::vector<KeptHead>& heads,
                  const std::optional<PublicKey>& key, Verdict& verdict);

}  // namespace verbatim
