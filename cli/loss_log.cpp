#include "cli/loss_log.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "store/digest_reader.h"
#include "store/format.h"
#include "store/settings.h"
#include "supernet/object_reader.h"

namespace verbatim {
namespace {

/// Steps by number, and the lines that they are on.
class StepsByNumber {
 public:
  explicit StepsByNumber(const std::string& source) : source_(source) {}

  Status Add(LoggedStep step, int line) {
    const std::int64_t number = step.facts.step;
    const auto [found, is_new] = steps_.emplace(number, std::pair(std::move(step), line));
    if (is_new) return {};
    return BadInput(fmt::format("{}:{}: step {} is on line {} already", source_, line, number,
                                found->second.second),
                    "Each step may be logged once.");
  }
  bool empty() const { return steps_.empty(); }
  std::vector<LoggedStep> Take() {
    std::vector<LoggedStep> steps;
    for (auto& [number, step] : steps_) steps.push_back(std::move(step.first));
    return steps;
  }

 private:
  const std::string& source_;
  std::map<std::int64_t, std::pair<LoggedStep, int>> steps_;
};

/// The next line of a text, without its end; nothing after the last.
std::optional<std::string_view> NextLine(std::string_view& text) {
  if (text.empty()) return std::nullopt;
  const std::size_t end = text.find('\n');
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

/// Of the nearest float32; nothing of a finite number beyond them.
std::optional<std::uint32_t> LossBits(double loss) {
  if (std::isfinite(loss) && std::abs(loss) > std::numeric_limits<float>::max())
    return std::nullopt;
  return std::bit_cast<std::uint32_t>(static_cast<float>(loss));
}

std::optional<double> SpecialNumber(std::string_view text) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return kInfinity;
  if (text == "-Infinity") return -kInfinity;
  return std::nullopt;
}

/// A number, "NaN", "Infinity", "-Infinity", or null: none.
void ReadLoss(const JsonNode& node, LoggedStep& step, ReadErrors& errors) {
  if (node.kind == JsonKind::kNull) return;
  if (node.kind == JsonKind::kString) {
    const auto special = SpecialNumber(node.text);
    if (special) {
      step.loss_bits = LossBits(*special);
    } else {
      errors.Report(node.position, "loss", fmt::format("\"{}\" is no number", node.text),
                    "A string may be \"NaN\", \"Infinity\" or \"-Infinity\".");
    }
    return;
  }
  double loss = 0.0;
  ReadNumber(node, "loss", {.least = -std::numeric_limits<double>::max()}, &loss, &errors);
  step.loss_bits = LossBits(loss);
  if (!step.loss_bits) errors.Report(node.position, "loss", "is beyond a float32");
}

/// "0x40135d8e".
void ReadLossBits(const JsonNode& node, LoggedStep& step, ReadErrors& errors) {
  if (!ExpectKind(node, JsonKind::kString, "loss_bits", &errors)) return;
  std::string_view digits = node.text;
  std::uint32_t bits = 0;
  const bool has_prefix = digits.starts_with("0x") && digits.size() == 10;
  if (has_prefix) digits.remove_prefix(2);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
  if (!has_prefix || error != std::errc() || end != digits.data() + digits.size()) {
    errors.Report(node.position, "loss_bits", "expected 0x and 8 hexadecimal digits");
    return;
  }
  step.loss_bits = bits;
}

Result<LoggedStep> ReadStep(const JsonNode& node, const std::string& source) {
  LoggedStep step;
  ReadErrors errors(source);
  const ObjectReader object(
      node, "", {"batch", "loss", "loss_bits", "parts", "random_state", "settings", "step"},
      &errors);
  object.Integer("step", {0, kStepMax}, &step.facts.step, Presence::kRequired);
  const JsonNode* const loss = object.Find("loss");
  const JsonNode* const bits = object.Find("loss_bits");
  if (loss != nullptr) ReadLoss(*loss, step, errors);
  if (bits != nullptr) ReadLossBits(*bits, step, errors);
  if (loss != nullptr && bits != nullptr) {
    errors.Report(bits->position, "loss_bits", "there is a loss already");
  }
  if (const JsonNode* batch = object.Find("batch"))
    step.batch = ReadDigest(*batch, "batch", &errors);
  if (const JsonNode* state = object.Find("random_state")) {
    step.facts.random_state = ReadDigest(*state, "random_state", &errors);
  }
  if (const JsonNode* parts = object.Find("parts")) {
    step.facts.parts = ReadDigests(*parts, "parts", &errors);
  }
  if (errors.first()) return tl::unexpected(*errors.first());
  if (const JsonNode* settings = object.Find("settings")) {
    ASSIGN_OR_RETURN(step.facts.settings, ReadSettings(*settings, "settings", source));
  }
  return step;
}

constexpr const char* kNaspipeHint =
    "A line of the last stage reads: Stage: [3] Epoch: [0][1/49372]\\tTime: 0.784 (0.784)\\tId: "
    "0\\tTokens: 761\\tOutput: 8336.448\\t";

/// What stands behind `name` up to the next tabulator or the end; nothing where it is not there.
std::optional<std::string_view> Field(std::string_view line, std::string_view name) {
  const std::size_t at = line.find(name);
  if (at == std::string_view::npos) return std::nullopt;
  line.remove_prefix(at + name.size());
  return line.substr(0, line.find('\t'));
}

template <typename Number>
std::optional<Number> Parse(std::optional<std::string_view> text) {
  Number number{};
  if (!text) return std::nullopt;
  const char* const end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

/// "Epoch: [0][1/49372]".
std::optional<std::int64_t> EpochOf(std::string_view line) {
  const auto field = Field(line, "Epoch: [");
  if (!field) return std::nullopt;
  return Parse<std::int64_t>(field->substr(0, field->find(']')));
}

Result<LoggedStep> ReadNaspipeLine(std::string_view line, const std::string& place) {
  const auto bad = [&](const char* what) {
    return BadInput(fmt::format("{}: {}", place, what), kNaspipeHint);
  };
  LoggedStep step;
  const auto id = Parse<std::int64_t>(Field(line, "\tId: "));
  if (!id || *id < 0 || *id > kStepMax) return bad("its Id is no number of a subnet");
  step.facts.step = *id;
  const auto epoch = EpochOf(line);
  if (!epoch) return bad("its Epoch is no number");
  step.facts.settings["epoch"] = SettingText(*epoch);
  if (const auto text = Field(line, "\tTokens: ")) {
    const auto tokens = Parse<std::int64_t>(text);
    if (!tokens) return bad("its Tokens are no number");
    step.facts.settings["tokens"] = SettingText(*tokens);
  }
  const auto output = Parse<double>(Field(line, "\tOutput: "));
  if (output) step.loss_bits = LossBits(*output);
  if (!step.loss_bits) return bad("its Output is no float32");
  return step;
}

}  // namespace

Result<std::vector<LoggedStep>> ReadJsonLines(std::string_view text, const std::string& source) {
  StepsByNumber steps(source);
  int number = 0;
  while (const auto line = NextLine(text)) {
    ++number;
    if (line->find_first_not_of(" \t") == std::string_view::npos) continue;
    ASSIGN_OR_RETURN(const JsonNode node, ParseJson(*line, source, number));
    ASSIGN_OR_RETURN(LoggedStep step, ReadStep(node, source));
    RETURN_IF_ERROR(steps.Add(std::move(step), number));
  }
  if (steps.empty()) return BadInput(fmt::format("{}: there is no step in it", source));
  return steps.Take();
}

Result<std::vector<LoggedStep>> ReadNaspipeLog(std::string_view text, const std::string& source) {
  StepsByNumber steps(source);
  int number = 0;
  while (const auto line = NextLine(text)) {
    ++number;
    const bool is_subnet = line->starts_with("Stage: [") && line->find("\tId: ") != line->npos;
    if (!is_subnet) continue;
    ASSIGN_OR_RETURN(LoggedStep step, ReadNaspipeLine(*line, fmt::format("{}:{}", source, number)));
    RETURN_IF_ERROR(steps.Add(std::move(step), number));
  }
  if (steps.empty()) {
    return BadInput(fmt::format("{}: no line tells a subnet's Id and Output", source),
                    kNaspipeHint);
  }
  return steps.Take();
}

}  // namespace verbatim
