#include "trainer/result_queue.h"

#include <exception>

#include "base/exception_text.h"

namespace verbatim {

ResultQueue::ResultQueue(bool is_behind, std::function<void(const std::string&)> on_failure)
    : is_behind_(is_behind), on_failure_(std::move(on_failure)) {
  if (is_behind_) thread_ = std::thread([this] { Serve(); });
}

ResultQueue::~ResultQueue() {
  {
    const std::lock_guard lock(mutex_);
    entries_.clear();
  }
  Close();
}

void ResultQueue::Close() {
  {
    const std::lock_guard lock(mutex_);
    is_closing_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ResultQueue::Push(Entry entry) {
  const std::lock_guard lock(mutex_);
  if (has_failed_) return;
  entries_.push_back(std::move(entry));
  changed_.notify_all();
}

void ResultQueue::Serve() {
  try {
    while (HandOutNext()) {
    }
  } catch (const std::exception& error) {
    {
      const std::lock_guard lock(mutex_);
      has_failed_ = true;
      entries_.clear();
    }
    on_failure_(ExceptionText(error));
  }
}

bool ResultQueue::HandOutNext() {
  Entry entry;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_closing_ || !entries_.empty(); });
    if (entries_.empty()) return false;
    entry = std::move(entries_.front());
    entries_.pop_front();
  }
  Synchronize(entry.ready);
  entry.hand_out();
  return true;
}

}  // namespace verbatim
