#include "store/head.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <system_error>

#include "base/durable_file.h"
#include "base/encoding.h"
#include "base/hex.h"
#include "store/evidence_json.h"
#include "store/format.h"
#include "supernet/text_file.h"

namespace verbatim {
namespace {

constexpr std::string_view kFormat = "verbatim-head";
constexpr std::int64_t kVersion = 1;
constexpr std::string_view kAlgorithm = "ed25519";
// Opens the bytes that are signed: a signature of anything else fits no head.
constexpr std::string_view kSignedLabel = "verbatim.head.1";
constexpr std::string_view kUtcPattern = "dddd-dd-ddTdd:dd:ddZ";

void AddHash(Encoder& encoder, const Hash256& hash) {
  encoder.Bytes(hash.bytes.data(), hash.bytes.size());
}

bool IsUtc(std::string_view text) {
  return std::equal(
      text.begin(), text.end(), kUtcPattern.begin(), kUtcPattern.end(),
      [](char c, char pattern) { return pattern == 'd' ? c >= '0' && c <= '9' : c == pattern; });
}

/// Fields of one line, without the checks of format and version.
class HeadReader {
 public:
  HeadReader(const JsonNode& node, const std::string& source)
      : errors_(source),
        object_(node, "",
                {"format", "version", "subnets", "content_root", "layout_root", "start",
                 "resumptions", "circumstances", "end", "created_utc", "signature"},
                &errors_) {}

  Result<Head> Read() {
    Head head;
    object_.Integer("subnets", {0, kSeqMax + 1}, &head.subnets, Presence::kRequired);
    ReadBytes(object_, "content_root", head.content_root.bytes, &errors_);
    ReadBytes(object_, "layout_root", head.layout_root.bytes, &errors_);
    ReadBytes(object_, "start", head.start.bytes, &errors_);
    object_.Integer("resumptions", {0, INT32_MAX}, &head.resumptions, Presence::kRequired);
    ReadBytes(object_, "circumstances", head.circumstances.bytes, &errors_);
    if (object_.Find("end") != nullptr) {
      ReadBytes(object_, "end", head.end.emplace().bytes, &errors_);
    }
    ReadTime(head.created_utc);
    if (const JsonNode* node = object_.Find("signature")) ReadSignature(*node, head);
    if (errors_.first()) return tl::unexpected(*errors_.first());
    return head;
  }

 private:
  void ReadTime(std::string& time) {
    object_.String("created_utc", &time, Presence::kRequired);
    const JsonNode* node = object_.Find("created_utc");
    if (node == nullptr || IsUtc(time)) return;
    errors_.Report(node->position, "created_utc", "must be a time like 2026-01-31T12:00:00Z");
  }

  void ReadSignature(const JsonNode& node, Head& head) {
    const ObjectReader object(node, "signature", {"algorithm", "key", "bytes"}, &errors_);
    std::string algorithm;
    object.String("algorithm", &algorithm, Presence::kRequired);
    if (algorithm != kAlgorithm) {
      errors_.Report(node.position, "signature.algorithm", fmt::format("must be {}", kAlgorithm));
    }
    Signature& signature = head.signature.emplace();
    ReadBytes(object, "key", signature.key.bytes, &errors_);
    ReadBytes(object, "bytes", signature.bytes, &errors_);
  }

  ReadErrors errors_;
  ObjectReader object_;
};

Result<Head> ParseHead(std::string_view line, const std::string& source, int number) {
  ASSIGN_OR_RETURN(const JsonNode node, ParseJson(line, source, number));
  RETURN_IF_ERROR(CheckFormat(node, kFormat, kVersion, "head", source));
  return HeadReader(node, source).Read();
}

/// Where the last line begins that has no line feed; the text's end where there is none.
std::size_t LastLine(std::string_view text) {
  return text.rfind('\n') + 1;  // 0 where there is none
}

/// Whether a line that has no line feed lacks nothing else.
bool IsHead(std::string_view line) {
  return ParseHead(line, "", 1).has_value();
}

/// Makes the file end with whole lines. A line that only lacks its line feed gets it.
Status MendEnd(const std::filesystem::path& path, DurableFile& file) {
  std::error_code error;
  if (std::filesystem::file_size(path, error) == 0 || error) return {};
  std::ifstream last(path, std::ios::binary);
  if (last.seekg(-1, std::ios::end).get() == '\n') return {};
  ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, "the file of heads", ""));
  const std::size_t end = LastLine(text);
  if (IsHead(std::string_view(text).substr(end))) return file.Write("\n");
  std::filesystem::resize_file(path, end, error);
  if (!error) return {};
  return Failed(fmt::format("cannot write {}: {}", path.string(), error.message()),
                "its last line was cut short: remove it");
}

}  // namespace

std::string EncodeHead(const Head& head) {
  Encoder encoder;
  encoder.String(kSignedLabel).I64(head.subnets);
  AddHash(encoder, head.content_root);
  AddHash(encoder, head.layout_root);
  AddHash(encoder, head.start);
  encoder.I64(head.resumptions);
  AddHash(encoder, head.circumstances);
  encoder.U8(head.end ? 1 : 0);
  if (head.end) AddHash(encoder, *head.end);
  encoder.String(head.created_utc);
  return encoder.bytes();
}

void SignHead(const SecretKey& key, Head& head) {
  head.signature = Sign(key, EncodeHead(head));
}

bool IsSignedBy(const Head& head, const PublicKey& key) {
  return head.signature && head.signature->key == key && Verify(*head.signature, EncodeHead(head));
}

std::string HeadToJson(const Head& head) {
  std::string text = fmt::format(
      R"({{"format":"{}","version":{},"subnets":{},"content_root":"{}","layout_root":"{}",)"
      R"("start":"{}","resumptions":{},"circumstances":"{}")",
      kFormat, kVersion, head.subnets, ToHex(head.content_root), ToHex(head.layout_root),
      ToHex(head.start), head.resumptions, ToHex(head.circumstances));
  if (head.end) text += fmt::format(R"(,"end":"{}")", ToHex(*head.end));
  text += fmt::format(R"(,"created_utc":"{}")", head.created_utc);
  if (head.signature) {
    text += fmt::format(R"(,"signature":{{"algorithm":"{}","key":"{}","bytes":"{}"}})", kAlgorithm,
                        BytesToHex(head.signature->key.bytes), BytesToHex(head.signature->bytes));
  }
  return text + "}\n";
}

Result<std::vector<Head>> ParseHeads(std::string_view text, const std::string& source) {
  std::vector<Head> heads;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) {
      return BadInput(fmt::format("{}:{}: this line is cut short: it has no line feed at its end",
                                  source, number),
                      "A machine stopped while it was written. Remove the line: the heads before "
                      "it are whole.");
    }
    ASSIGN_OR_RETURN(Head head, ParseHead(text.substr(0, end), source, number));
    heads.push_back(std::move(head));
    text.remove_prefix(end + 1);
  }
  if (heads.empty()) {
    return BadInput(fmt::format("{} holds no head", source),
                    "verbatim head RUN.db -o HEAD writes one.");
  }
  return heads;
}

Result<std::vector<Head>> ReadHeads(const std::filesystem::path& path) {
  ASSIGN_OR_RETURN(
      const std::string text,
      ReadTextFile(path, "the file of heads", "verbatim head RUN.db -o HEAD writes one."));
  return ParseHeads(text, path.string());
}

std::string WholeHeads(std::string text) {
  const std::size_t end = LastLine(text);
  const std::string rest = text.substr(end);
  if (IsHead(rest)) return text + '\n';
  const std::string head = HeadToJson(Head{});
  const std::string begin = head.substr(0, std::min(rest.size(), head.find(',')));
  if (rest.starts_with(begin)) text.resize(end);
  return text;
}

Status AppendHead(const std::filesystem::path& path, const Head& head) {
  std::error_code error;
  const bool is_new = !std::filesystem::exists(path, error);
  ASSIGN_OR_RETURN(DurableFile file, DurableFile::Append(path));
  const bool is_file = std::filesystem::is_regular_file(path, error);
  if (is_file) RETURN_IF_ERROR(MendEnd(path, file));
  const std::uintmax_t size = is_file ? std::filesystem::file_size(path, error) : 0;
  Status written = file.Write(HeadToJson(head));
  if (written) written = file.Sync();
  if (!written) {
    if (is_file) std::filesystem::resize_file(path, size, error);
    return written;
  }
  RETURN_IF_ERROR(file.Close());
  if (!is_new) return {};
  const std::filesystem::path folder = path.parent_path();
  return SyncFolder(folder.empty() ? std::filesystem::path(".") : folder);
}

}  // namespace verbatim
