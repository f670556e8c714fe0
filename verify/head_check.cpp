#include "verify/head_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/merkle.h"
#include "verify/text.h"

namespace verbatim {
namespace {

std::string Subnets(std::int64_t count) {
  return FormatCount(count, "subnet", "subnets");
}

/// "subnets 200 to 299", "subnet 299".
std::string RangeText(std::int64_t begin, std::int64_t end) {
  if (end - begin == 1) return fmt::format("subnet {}", begin);
  return fmt::format("subnets {} to {}", begin, end - 1);
}

/// What the record says now, and how far heads have been found to agree with it.
class HeadComparison {
 public:
  HeadComparison(const RecordReader& reader, const std::vector<KeptHead>& heads)
      : reader_(reader), heads_(heads) {}

  Status Open() {
    ASSIGN_OR_RETURN(now_, reader_.HeadNow());
    return {};
  }

  Result<std::optional<HeadMismatch>> Compare(const KeptHead& kept) const;

 private:
  Result<bool> HasRoot(const MerkleSource& tree, std::int64_t size, const Hash256& root) const {
    if (size > now_.subnets) return false;
    ASSIGN_OR_RETURN(const Hash256 found, MerkleRoot(size, tree));
    return found == root;
  }
  /// The size of the largest head below `size` with which the record agrees; 0 without one.
  Result<std::int64_t> AgreesUpTo(std::int64_t size, bool in_content) const {
    std::int64_t agreed = 0;
    for (const auto& [head, file] : heads_) {
      if (head.subnets >= size || head.subnets <= agreed) continue;
      ASSIGN_OR_RETURN(const bool agrees,
                       in_content ? HasRoot(reader_.ContentTree(), head.subnets, head.content_root)
                                  : HasRoot(reader_.LayoutTree(), head.subnets, head.layout_root));
      if (agrees) agreed = head.subnets;
    }
    return agreed;
  }
  Result<std::optional<HeadMismatch>> CompareRoots(const KeptHead& kept) const;
  Result<HeadMismatch> RootMismatch(const KeptHead& kept, bool in_content) const;
  Result<std::optional<HeadMismatch>> CompareCircumstances(const KeptHead& kept) const;
  std::optional<HeadMismatch> CompareEnd(const KeptHead& kept) const;

  const RecordReader& reader_;
  const std::vector<KeptHead>& heads_;
  Head now_;
};

HeadMismatch Mismatch(const KeptHead& kept, const std::string& problem, std::string what,
                      std::string recorded, std::string expected) {
  return {fmt::format("{}: {}", Describe(kept), problem), std::move(what), std::move(recorded),
          std::move(expected), std::nullopt};
}

Result<std::optional<HeadMismatch>> HeadComparison::Compare(const KeptHead& kept) const {
  const Head& head = kept.head;
  if (head.start != now_.start) {
    return Mismatch(kept,
                    "this is another run, or its spec, data set or initial weights were changed",
                    "start of the run", ToShortHex(now_.start), ToShortHex(head.start));
  }
  if (head.subnets > now_.subnets) {
    return Mismatch(
        kept,
        fmt::format("the record was cut, or replaced by an earlier state: of the {} it holds {} "
                    "without a gap",
                    Subnets(head.subnets), FormatCount(now_.subnets)),
        "subnets", Subnets(now_.subnets), Subnets(head.subnets));
  }
  ASSIGN_OR_RETURN(auto mismatch, CompareRoots(kept));
  if (mismatch) return mismatch;
  ASSIGN_OR_RETURN(mismatch, CompareCircumstances(kept));
  if (mismatch) return mismatch;
  return CompareEnd(kept);
}

Result<std::optional<HeadMismatch>> HeadComparison::CompareRoots(const KeptHead& kept) const {
  const Head& head = kept.head;
  ASSIGN_OR_RETURN(const bool has_content,
                   HasRoot(reader_.ContentTree(), head.subnets, head.content_root));
  if (!has_content) return RootMismatch(kept, true);
  ASSIGN_OR_RETURN(const bool has_layout,
                   HasRoot(reader_.LayoutTree(), head.subnets, head.layout_root));
  if (!has_layout) return RootMismatch(kept, false);
  return std::nullopt;
}

Result<HeadMismatch> HeadComparison::RootMismatch(const KeptHead& kept, bool in_content) const {
  const std::int64_t size = kept.head.subnets;
  ASSIGN_OR_RETURN(const std::int64_t agreed, AgreesUpTo(size, in_content));
  ASSIGN_OR_RETURN(const Hash256 root,
                   MerkleRoot(size, in_content ? reader_.ContentTree() : reader_.LayoutTree()));
  const char* what = in_content ? "content" : "stages and times";
  const std::string before =
      agreed > 0 ? fmt::format("; the {} before agree with an older head", Subnets(agreed)) : "";
  HeadMismatch mismatch = Mismatch(
      kept, fmt::format("{} of {}: changed{}", what, RangeText(agreed, size), before),
      fmt::format("{} root of {}", in_content ? "content" : "layout", Subnets(size)),
      ToShortHex(root), ToShortHex(in_content ? kept.head.content_root : kept.head.layout_root));
  if (size - agreed == 1) mismatch.seq = agreed;
  return mismatch;
}

Result<std::optional<HeadMismatch>> HeadComparison::CompareCircumstances(
    const KeptHead& kept) const {
  const Head& head = kept.head;
  if (head.resumptions > now_.resumptions) {
    return Mismatch(kept, "resumptions of the run were removed", "resumptions",
                    FormatCount(now_.resumptions), FormatCount(head.resumptions));
  }
  ASSIGN_OR_RETURN(const Head then, reader_.HeadAt(head.subnets, head.resumptions));
  if (then.circumstances == head.circumstances) return std::nullopt;
  return Mismatch(kept,
                  "program, command line, layout, environment or a resumption of the run was "
                  "changed",
                  "circumstances of the run", ToShortHex(then.circumstances),
                  ToShortHex(head.circumstances));
}

std::optional<HeadMismatch> HeadComparison::CompareEnd(const KeptHead& kept) const {
  const Head& head = kept.head;
  // A run that was resumed has another end.
  if (!head.end || head.resumptions < now_.resumptions) return std::nullopt;
  const std::string none = "not ended";
  const std::string recorded = now_.end ? ToShortHex(*now_.end) : none;
  if (now_.subnets > head.subnets) {
    return Mismatch(kept, "subnets were added after the run had ended", "subnets",
                    Subnets(now_.subnets), Subnets(head.subnets));
  }
  if (now_.end == head.end) return std::nullopt;
  return Mismatch(kept, "the run's end or its evaluations were changed", "end of the run", recorded,
                  ToShortHex(*head.end));
}

std::optional<HeadMismatch> SignatureMismatch(const KeptHead& kept, const PublicKey& key) {
  const Head& head = kept.head;
  if (IsSignedBy(head, key)) return std::nullopt;
  if (!head.signature) {
    return Mismatch(kept, "it is not signed", "signature", "none", "by " + ToShortHex(key));
  }
  if (head.signature->key != key) {
    return Mismatch(kept, "it is signed with another key", "signature",
                    "by " + ToShortHex(head.signature->key), "by " + ToShortHex(key));
  }
  return Mismatch(kept, "its signature does not fit: the head was changed", "signature",
                  "of something else", "by " + ToShortHex(key));
}

/// "3 heads, the newest of 300 subnets, signed by 3d4017c3".
std::string Detail(const std::vector<KeptHead>& heads, const std::optional<PublicKey>& key,
                   std::int64_t recorded) {
  std::int64_t newest = 0;
  for (const KeptHead& kept : heads) newest = std::max(newest, kept.head.subnets);
  std::string text = fmt::format("{}, the newest of {}, {}",
                                 FormatCount(std::ssize(heads), "head", "heads"), Subnets(newest),
                                 key ? "signed by " + ToShortHex(*key) : "signatures not checked");
  if (recorded > newest) {
    text += fmt::format("; under none: {}", RangeText(newest, recorded));
  }
  return text;
}

Difference AsDifference(const HeadMismatch& mismatch, const std::string& record) {
  Difference difference;
  difference.kind = DifferenceClass::kForged;
  difference.seq = mismatch.seq;
  difference.what = mismatch.what;
  difference.recorded = mismatch.recorded;
  difference.expected = mismatch.expected;
  difference.cause = mismatch.problem;
  difference.next_command = fmt::format("verbatim verify {} --reexecute all", ShellPath(record));
  return difference;
}

}  // namespace

std::string Describe(const KeptHead& kept) {
  return fmt::format("the head of {} of {} in {}", Subnets(kept.head.subnets),
                     kept.head.created_utc, kept.file);
}

Result<std::vector<KeptHead>> ReadKeptHeads(const std::vector<std::filesystem::path>& files) {
  std::vector<KeptHead> heads;
  for (const std::filesystem::path& file : files) {
    ASSIGN_OR_RETURN(const std::vector<Head> of_file, ReadHeads(file));
    for (const Head& head : of_file) heads.push_back({head, file.string()});
  }
  return heads;
}

Result<std::vector<HeadMismatch>> CompareWithHeads(const RecordReader& reader,
                                                   const std::vector<KeptHead>& heads,
                                                   const std::optional<PublicKey>& key) {
  HeadComparison comparison(reader, heads);
  RETURN_IF_ERROR(comparison.Open());
  std::vector<HeadMismatch> mismatches;
  for (const KeptHead& kept : heads) {
    std::optional<HeadMismatch> mismatch;
    if (key) mismatch = SignatureMismatch(kept, *key);
    if (!mismatch) {
      ASSIGN_OR_RETURN(mismatch, comparison.Compare(kept));
    }
    if (mismatch) mismatches.push_back(*std::move(mismatch));
  }
  return mismatches;
}

void AddHeadCheck(const RecordReader& reader, const std::vector<KeptHead>& heads,
                  const std::optional<PublicKey>& key, Verdict& verdict) {
  Check check = PassedCheck(kCheckHeads, Detail(heads, key, verdict.counts.subnets));
  const auto mismatches = CompareWithHeads(reader, heads, key);
  if (!mismatches) {
    AddDamage(check, mismatches.error().message);
    verdict.damaged = true;
  } else {
    for (const HeadMismatch& mismatch : *mismatches) AddProblem(check, mismatch.problem);
    if (mismatches->empty() && verdict.damaged) {
      check.outcome = Outcome::kNotRun;
      check.detail = "the record is damaged: its rows are not what its trees and seals say";
    }
    // That the record was changed says more than anything that it says of itself.
    if (!mismatches->empty()) {
      verdict.first_difference = AsDifference(mismatches->front(), verdict.record);
    }
  }
  verdict.checks.insert(verdict.checks.end() - 1, std::move(check));
}

}  // namespace verbatim
