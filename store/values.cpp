#include "store/values.h"

#include <array>
#include <charconv>

#include "base/check.h"

namespace verbatim {
namespace {

constexpr std::array kRunStatuses = {RunStatus::kRunning, RunStatus::kComplete,
                                     RunStatus::kInterrupted, RunStatus::kFailed};

}  // namespace

const char* ToString(RunStatus status) {
  switch (status) {
    case RunStatus::kRunning:
      return "running";
    case RunStatus::kComplete:
      return "complete";
    case RunStatus::kInterrupted:
      return "interrupted";
    case RunStatus::kFailed:
      return "failed";
  }
  VERBATIM_CHECK(false, "status {}", static_cast<int>(status));
}

const char* ToString(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return "forward";
    case Phase::kBackward:
      return "backward";
    case Phase::kUpdate:
      return "update";
  }
  VERBATIM_CHECK(false, "phase {}", static_cast<int>(phase));
}

std::optional<RunStatus> RunStatusFromString(std::string_view text) {
  for (const RunStatus status : kRunStatuses) {
    if (text == ToString(status)) return status;
  }
  return std::nullopt;
}

std::string EncodeChoices(std::span<const std::uint16_t> choices) {
  std::string text = "[";
  for (const std::uint16_t choice : choices) {
    if (text.size() > 1) text.push_back(',');
    text += std::to_string(choice);
  }
  text.push_back(']');
  return text;
}

bool DecodeChoices(std::string_view text, std::vector<std::uint16_t>& choices) {
  choices.clear();
  if (text == "[]") return true;
  const char* at = text.data();
  const char* const end = at + text.size();
  if (at == end || *at != '[') return false;
  while (++at < end) {
    std::uint16_t choice = 0;
    const auto [stop, error] = std::from_chars(at, end, choice);
    const bool has_leading_zero = *at == '0' && stop - at > 1;
    if (error != std::errc() || has_leading_zero || stop == end) return false;
    choices.push_back(choice);
    at = stop;
    if (*at != ',') break;
  }
  return at + 1 == end && *at == ']';
}

std::string EncodeSamples(std::span<const std::uint32_t> samples) {
  std::string bytes;
  bytes.reserve(4 * samples.size());
  for (const std::uint32_t sample : samples) {
    for (int shift = 0; shift < 32; shift += 8) {
      bytes.push_back(static_cast<char>(sample >> shift & 0xff));
    }
  }
  return bytes;
}

bool DecodeSamples(std::string_view bytes, std::vector<std::uint32_t>& samples) {
  if (bytes.size() % 4 != 0) return false;
  samples.resize(bytes.size() / 4);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto byte = [&](std::size_t k) {
      return std::uint32_t{static_cast<std::uint8_t>(bytes[4 * i + k])};
    };
    samples[i] = byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
  }
  return true;
}

}  // namespace verbatim
