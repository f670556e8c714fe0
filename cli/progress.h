// A progress bar on stderr: count, rate and remaining time.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string>

namespace verbatim {

/// One line without an end of line, at most `columns` wide (with the bar left out first where there
/// is little room): "training  [#####.....]  150/300  50 %  12.5/s  12 s left".
std::string RenderProgress(const std::string& label, std::int64_t done, std::int64_t total,
                           double seconds, int columns);

/// Thread-safe. Draws nothing where it is not enabled.
class ProgressBar {
 public:
  struct Options {
    std::FILE* stream = stderr;
    bool enabled = true;
    bool color = false;
    std::function<double()> seconds;  ///< a steady clock; empty: the system's
  };

  ProgressBar(std::string label, std::int64_t total, Options options);
  /// Enabled where stderr is a terminal and `quiet` is false.
  ProgressBar(std::string label, std::int64_t total, bool quiet, bool no_color);
  ~ProgressBar() { Finish(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Cheap: draws at most ten times a second, and at the end.
  void Update(std::int64_t done);
  /// Removes the bar from the terminal. Nothing is drawn afterwards.
  void Finish();

 private:
  void Draw(std::int64_t done, double now);

  std::string label_;
  std::int64_t total_;
  Options options_;
  double started_;
  std::atomic<double> next_draw_;
  std::mutex mutex_;
  bool drawn_ = false;
  bool finished_ = false;
};

}  // namespace verbatim
