#include "cli/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "cli/output.h"

namespace verbatim {
namespace {

constexpr double kDrawInterval = 0.1;
constexpr int kBarWidthMax = 30;
constexpr int kBarWidthMin = 8;

double SteadySeconds() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

int TerminalColumns(std::FILE* stream) {
  winsize size{};
  const bool known = ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

std::string Duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string Bar(double share, int width) {
  const int filled = static_cast<int>(share * width);
  return fmt::format("[{}{}]  ", std::string(filled, '#'), std::string(width - filled, '.'));
}

}  // namespace

std::string RenderProgress(const std::string& label, std::int64_t done, std::int64_t total,
                           double seconds, int columns) {
  const double share =
      total > 0 ? std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0)
                : 1.0;
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0.0;
  std::string tail = fmt::format("{}/{}  {} %", done, total, static_cast<int>(share * 100));
  if (rate > 0) {
    tail +=
        fmt::format("  {:.1f}/s  {} left", rate,
                    Duration(static_cast<double>(std::max<std::int64_t>(total - done, 0)) / rate));
  }
  const int room = columns - static_cast<int>(label.size() + tail.size()) - 6;
  const std::string bar =
      room >= kBarWidthMin ? Bar(share, std::min(room, kBarWidthMax)) : std::string();
  std::string line = label + "  " + bar + tail;
  if (std::ssize(line) > columns) line.resize(static_cast<std::size_t>(std::max(columns, 0)));
  return line;
}

ProgressBar::ProgressBar(std::string label, std::int64_t total, Options options)
    : label_(std::move(label)), total_(total), options_(std::move(options)) {
  if (!options_.seconds) options_.seconds = SteadySeconds;
  started_ = options_.seconds();
  next_draw_ = started_ + kDrawInterval;
}

ProgressBar::ProgressBar(std::string label, std::int64_t total, bool quiet, bool no_color)
    : ProgressBar(
          std::move(label), total,
          Options{stderr, !quiet && isatty(fileno(stderr)) == 1, UseColor(stderr, no_color), {}}) {}

void ProgressBar::Update(std::int64_t done) {
  if (!options_.enabled) return;
  const double now = options_.seconds();
  if (now < next_draw_.load(std::memory_order_relaxed) && done < total_) return;
  const std::lock_guard lock(mutex_);
  if (finished_ || (now < next_draw_.load(std::memory_order_relaxed) && done < total_)) return;
  next_draw_.store(now + kDrawInterval, std::memory_order_relaxed);
  Draw(done, now);
}

void ProgressBar::Draw(std::int64_t done, double now) {
  // One column stays free: a full line would make some terminals scroll.
  const std::string line =
      RenderProgress(label_, done, total_, now - started_, TerminalColumns(options_.stream) - 1);
  const std::string text = options_.color ? fmt::format("\r\x1b[36m{}\x1b[0m\x1b[K", line)
                                          : fmt::format("\r{}\x1b[K", line);
  std::fwrite(text.data(), 1, text.size(), options_.stream);
  std::fflush(options_.stream);
  drawn_ = true;
}

void ProgressBar::Finish() {
  const std::lock_guard lock(mutex_);
  if (finished_) return;
  finished_ = true;
  if (!drawn_) return;
  std::fputs("\r\x1b[K", options_.stream);
  std::fflush(options_.stream);
}

}  // namespace verbatim
