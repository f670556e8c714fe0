#include "supernet/list_sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/check.h"
#include "supernet/text_file.h"

namespace verbatim {
namespace {

/// Takes choices from one JSON value without building a tree: a list may hold millions.
class ChoicesHandler : public nlohmann::json_sax<nlohmann::json> {
 public:
  ChoicesHandler(const std::vector<std::uint32_t>& candidates, std::int64_t entries)
      : candidates_(candidates), wanted_(entries) {}

  /// Depth at which an entry starts: 1 within an array of entries, else 0.
  void set_entry_depth(int depth) { entry_depth_ = depth; }
  bool complete() const { return entry_ == wanted_; }
  std::int64_t entry() const { return entry_; }
  const std::optional<std::string>& error() const { return error_; }
  std::vector<std::uint16_t> Take() { return std::move(choices_); }

  bool null() override { return Scalar("null"); }
  bool boolean(bool) override { return Scalar("a boolean"); }
  bool number_integer(number_integer_t value) override { return Choice(value); }
  bool number_unsigned(number_unsigned_t value) override {
    constexpr number_unsigned_t kLarge = 1u << 31;
    return Choice(static_cast<number_integer_t>(std::min(value, kLarge)));
  }
  bool number_float(number_float_t, const string_t& text) override { return Scalar(text); }
  bool string(string_t&) override { return Scalar("a string"); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override {
    if (depth_ == entry_depth_) {
      is_object_ = true;
      has_op_ = false;
    } else if (InChoices()) {
      return Fail("holds an object where a candidate's number is expected");
    }
    ++depth_;
    return true;
  }
  bool end_object() override {
    --depth_;
    if (depth_ != entry_depth_) return true;
    return has_op_ ? EndEntry() : Fail("has no \"op\"");
  }
  bool start_array(std::size_t) override {
    if (depth_ == entry_depth_) {
      is_object_ = false;
      blocks_ = 0;
    } else if (InChoices()) {
      return Fail("holds a list where a candidate's number is expected");
    } else if (IsOp()) {
      if (has_op_) return Fail("has two \"op\"");
      has_op_ = true;
      blocks_ = 0;
    }
    ++depth_;
    return true;
  }
  bool end_array() override {
    --depth_;
    return depth_ == entry_depth_ && !is_object_ ? EndEntry() : true;
  }
  bool key(string_t& name) override {
    if (depth_ == entry_depth_ + 1) key_is_op_ = name == "op";
    return true;
  }
  bool parse_error(std::size_t byte, const std::string&,
                   const nlohmann::detail::exception&) override {
    return Fail(fmt::format("is malformed JSON near its byte {}", byte));
  }

 private:
  /// Within the `op` member of an object, or right under it.
  bool IsOp() const { return is_object_ && key_is_op_ && depth_ == entry_depth_ + 1; }
  bool InChoices() const {
    return depth_ == entry_depth_ + (is_object_ ? 2 : 1) && (!is_object_ || key_is_op_);
  }
  bool Fail(std::string what) {
    error_ = std::move(what);
    return false;
  }
  bool Scalar(const std::string& what) {
    if (depth_ == entry_depth_) return Fail(fmt::format("is {}, not a list of choices", what));
    if (InChoices()) return Fail(fmt::format("holds {} instead of a candidate's number", what));
    return IsOp() ? Fail(fmt::format("has {} as \"op\", not a list", what)) : true;
  }
  bool Choice(std::int64_t value) {
    if (!InChoices()) return Scalar("a number");
    if (blocks_ == candidates_.size()) {
      return Fail(fmt::format("has more than {} choices, one per block", candidates_.size()));
    }
    if (value < 0 || value >= candidates_[blocks_]) {
      return Fail(fmt::format("chooses candidate {} of block {}, which has {}", value, blocks_,
                              candidates_[blocks_]));
    }
    ++blocks_;
    choices_.push_back(static_cast<std::uint16_t>(value));
    return true;
  }
  /// False, which stops the parser, once no more is wanted.
  bool EndEntry() {
    if (blocks_ != candidates_.size()) {
      return Fail(fmt::format("has {} choices for {} blocks", blocks_, candidates_.size()));
    }
    return ++entry_ < wanted_;
  }

  const std::vector<std::uint32_t>& candidates_;
  const std::int64_t wanted_;
  std::vector<std::uint16_t> choices_;
  std::int64_t entry_ = 0;
  int depth_ = 0;
  int entry_depth_ = 0;
  bool is_object_ = false;
  bool key_is_op_ = false;
  bool has_op_ = false;
  std::size_t blocks_ = 0;  ///< choices of the entry so far
  std::optional<std::string> error_;
};

constexpr std::string_view kSpace = " \t\r\n";

/// Whether the text is one array of entries: `[[` or `[{`, or a list of nothing.
bool IsArrayOfEntries(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos || text[first] != '[') return false;
  const std::size_t second = text.find_first_not_of(kSpace, first + 1);
  return second != std::string_view::npos && (text[second] == '[' || text[second] == '{');
}

void ReadLines(std::string_view text, ChoicesHandler* handler) {
  while (!text.empty() && !handler->complete() && !handler->error()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(kSpace) == std::string_view::npos) continue;
    nlohmann::json::sax_parse(line.begin(), line.end(), handler);
  }
}

}  // namespace

Result<std::vector<std::uint16_t>> ReadChoices(std::string_view text, const std::string& source,
                                               const std::vector<std::uint32_t>& candidates,
                                               std::int64_t entries) {
  ChoicesHandler handler(candidates, entries);
  if (IsArrayOfEntries(text)) {
    handler.set_entry_depth(1);
    nlohmann::json::sax_parse(text.begin(), text.end(), &handler);
  } else {
    ReadLines(text, &handler);
  }
  if (handler.error()) {
    return BadInput(fmt::format("{}: entry {} {}", source, handler.entry(), *handler.error()),
                    "an entry is a list with one candidate's number, from 0, per block");
  }
  if (!handler.complete()) {
    return BadInput(fmt::format("{}: holds {} entries, but training.subnets is {}", source,
                                handler.entry(), entries),
                    "lengthen the list or lower training.subnets");
  }
  return handler.Take();
}

Result<std::vector<std::uint16_t>> ReadListedChoices(const Spec& spec,
                                                     const std::filesystem::path& spec_folder) {
  std::vector<std::uint32_t> candidates;
  for (const BlockSpec& block : spec.supernet.blocks) {
    candidates.insert(candidates.end(), static_cast<std::size_t>(block.repeat),
                      static_cast<std::uint32_t>(block.candidates.size()));
  }
  const std::filesystem::path path = spec_folder / spec.sampler.ListFile();
  ASSIGN_OR_RETURN(const std::string text,
                   ReadTextFile(path, "the list of subnets",
                                "check sampler.file; it is relative to the spec's folder"));
  return ReadChoices(text, path.string(), candidates, spec.training.subnets);
}

Choices ListSampler::Draw(std::int64_t seq) const {
  const auto entry = static_cast<std::size_t>(seq);
  VERBATIM_CHECK(seq >= 0 && (entry + 1) * blocks_ <= choices_.size(), "seq {} of {} choices", seq,
                 choices_.size());
  const auto first = choices_.begin() + static_cast<std::ptrdiff_t>(entry * blocks_);
  return Choices(first, first + static_cast<std::ptrdiff_t>(blocks_));
}

}  // namespace verbatim
