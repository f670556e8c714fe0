// A head: what a record held at one moment, in a few hundred bytes that are kept elsewhere
// (docs/format.md, "Heads"). Whoever changes, cuts or replaces the record afterwards cannot make it
// match a head that they cannot reach, nor one that is signed with a key that they do not have.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash256.h"
#include "base/status.h"
#include "store/signing.h"

namespace verbatim {

struct Head {
  std::int64_t subnets = 0;  ///< 0 … subnets - 1 are under the roots
  Hash256 content_root;      ///< equal for equal runs
  Hash256 layout_root;       ///< stages and times
  Hash256 start;             ///< StartSeal
  std::int64_t resumptions = 0;
  Hash256 circumstances;       ///< CircumstancesSeal with so many resumptions
  std::optional<Hash256> end;  ///< EndSeal, of a run that was closed
  std::string created_utc;     ///< by the clock of the machine that made it
  std::optional<Signature> signature;

  bool operator==(const Head&) const = default;
};

/// The bytes that are signed: everything but the signature.
std::string EncodeHead(const Head& head);
/// Puts a signature on it, in place of an older one.
void SignHead(const SecretKey& key, Head& head);
/// Whether the head bears a signature by `key` that fits it.
bool IsSignedBy(const Head& head, const PublicKey& key);

/// One line of JSON with a line feed at its end. A file of heads is such lines, oldest first.
std::string HeadToJson(const Head& head);
/// Every head in a text; `source` names it in errors. kBadInput where a line is no head, is cut
/// short, or of a version that this program does not read. At least one.
Result<std::vector<Head>> ParseHeads(std::string_view text, const std::string& source);
/// Likewise of a file; also kBadInput where it cannot be read.
Result<std::vector<Head>> ReadHeads(const std::filesystem::path& path);

/// Of the text of a file of heads, all that is whole: a last line that a machine which stopped left
/// cut short is none, and one that only lacks its line feed gets it. What is no head's beginning
/// stays, for ParseHeads to complain of.
std::string WholeHeads(std::string text);

/// Adds a line to a file of heads, which is made where there is none. Safe on disk once OK is
/// returned. The end of a line that was cut short, by a machine that stopped, makes way for it.
/// kFailed where it cannot be written: then the file is as it was, if the disk allows.
Status AppendHead(const std::filesystem::path& path, const Head& head);

}  // namespace verbatim
