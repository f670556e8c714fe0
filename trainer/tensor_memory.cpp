#include "trainer/tensor_memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace verbatim {
namespace {

constexpr std::size_t kAlignment = 64;

/// Before every block: a deleter is told its address alone.
struct alignas(kAlignment) Header {
  std::size_t size;
};

class Pool : public c10::Allocator {
 public:
  /// Never destroyed: tensors of static lifetime come back after the end of main.
  static Pool& Instance() {
    static Pool& pool = *new Pool;
    return pool;
  }

  c10::DataPtr allocate(std::size_t size) override {
    void* const block = size == 0 ? nullptr : Take((size + kAlignment - 1) & ~(kAlignment - 1));
    return {block, block, &Return, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Return; }
  void copy_data(void* to, const void* from, std::size_t count) const override {
    default_copy_data(to, from, count);
  }

  std::int64_t kept() {
    const std::lock_guard lock(mutex_);
    return kept_;
  }
  TensorMemoryUse used() {
    const std::lock_guard lock(mutex_);
    return used_;
  }
  void ForgetPeak() {
    const std::lock_guard lock(mutex_);
    used_.peak = used_.now;
  }

 private:
  void* Take(std::size_t size) {
    {
      const std::lock_guard lock(mutex_);
      used_.now += static_cast<std::int64_t>(size);
      used_.peak = std::max(used_.peak, used_.now);
      std::vector<void*>& blocks = free_[size];
      if (!blocks.empty()) {
        void* const block = blocks.back();
        blocks.pop_back();
        kept_ -= static_cast<std::int64_t>(size);
        return block;
      }
    }
    void* memory = nullptr;
    const bool is_there = posix_memalign(&memory, kAlignment, sizeof(Header) + size) == 0;
    if (!is_there) GiveUp(static_cast<std::int64_t>(size));
    TORCH_CHECK_WITH(OutOfMemoryError, is_there, "no memory left for a tensor of ", size, " bytes");
    return new (memory) Header{size} + 1;
  }

  void GiveUp(std::int64_t size) {
    const std::lock_guard lock(mutex_);
    used_.now -= size;
  }

  static void Return(void* block) {
    if (block != nullptr) Instance().Keep(block);
  }

  void Keep(void* block) {
    Header* const header = static_cast<Header*>(block) - 1;
    const auto size = static_cast<std::int64_t>(header->size);
    {
      const std::lock_guard lock(mutex_);
      used_.now -= size;
      if (kept_ + size <= kKeptTensorBytesMax) {
        // The last one in is the first one out: the likeliest to be in a cache.
        free_[header->size].push_back(block);
        kept_ += size;
        return;
      }
    }
    std::free(header);
  }

  std::mutex mutex_;
  std::unordered_map<std::size_t, std::vector<void*>> free_;  ///< by size
  std::int64_t kept_ = 0;
  TensorMemoryUse used_;
};

}  // namespace

void PoolTensorMemory() {
#ifndef __SANITIZE_ADDRESS__
  c10::SetCPUAllocator(&Pool::Instance());
#endif
}

std::int64_t KeptTensorBytes() {
  return Pool::Instance().kept();
}

TensorMemoryUse UsedTensorMemory() {
  return Pool::Instance().used();
}

void ForgetTensorPeak() {
  Pool::Instance().ForgetPeak();
}

}  // namespace verbatim
