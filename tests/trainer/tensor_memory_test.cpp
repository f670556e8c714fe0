// Proves that freed tensors' memory is handed out again, aligned, and that no more of it is kept
// than promised.
#include "trainer/tensor_memory.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <vector>

namespace verbatim {
namespace {

class TensorMemory : public testing::Test {
 protected:
  TensorMemory() { PoolTensorMemory(); }

  /// The address of a new tensor's memory, which is free again.
  static std::uintptr_t AddressOf(std::int64_t floats) {
    return reinterpret_cast<std::uintptr_t>(at::empty({floats}).data_ptr());
  }
};

TEST_F(TensorMemory, IsAligned) {
  for (const std::int64_t floats : {1, 15, 16, 17, 1000, 100'000}) {
    EXPECT_EQ(AddressOf(floats) % 64, 0u) << floats;
  }
}

TEST_F(TensorMemory, OfAnEmptyTensorIsNone) {
  EXPECT_EQ(AddressOf(0), 0u);
}

TEST_F(TensorMemory, HoldsWhatIsWrittenWhileOthersComeAndGo) {
  const auto fill = [](float value) {
    for (int round = 0; round < 200; ++round) {
      std::vector<at::Tensor> tensors;
      for (std::int64_t floats : {3, 64, 1000, 40'000}) {
        tensors.push_back(at::ones({floats}).mul_(value));
      }
      for (const at::Tensor& tensor : tensors) ASSERT_TRUE(tensor.eq(value).all().item<bool>());
    }
  };
  std::thread other(fill, 2.0f);
  fill(3.0f);
  other.join();
}

#ifdef __SANITIZE_ADDRESS__
TEST_F(TensorMemory, IsNotKeptUnderTheAddressSanitizer) {
  AddressOf(12'345);
  EXPECT_EQ(KeptTensorBytes(), 0);
  EXPECT_EQ(UsedTensorMemory().peak, 0);
}
#else
TEST_F(TensorMemory, IsHandedOutAgain) {
  const std::uintptr_t first = AddressOf(12'345);
  const std::int64_t kept = KeptTensorBytes();
  {
    const at::Tensor tensor = at::empty({12'345});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data_ptr()), first);
    // In multiples of 64 bytes: 12,345 floats are 49,380 bytes.
    EXPECT_EQ(KeptTensorBytes(), kept - 49'408);
  }
  EXPECT_EQ(KeptTensorBytes(), kept);
}

TEST_F(TensorMemory, IsCountedWhileItIsUsed) {
  ForgetTensorPeak();
  const TensorMemoryUse before = UsedTensorMemory();
  EXPECT_EQ(before.peak, before.now);
  {
    const at::Tensor tensor = at::empty({100});  // 400 bytes: 448 in multiples of 64
    at::Tensor other = at::empty({16});
    EXPECT_EQ(UsedTensorMemory().now, before.now + 448 + 64);
    other = at::Tensor();
    EXPECT_EQ(UsedTensorMemory().now, before.now + 448);
  }
  EXPECT_EQ(UsedTensorMemory().now, before.now);
  EXPECT_EQ(UsedTensorMemory().peak, before.now + 448 + 64);
  EXPECT_THROW(at::empty({std::int64_t{1} << 58}), std::exception);
  EXPECT_EQ(UsedTensorMemory().now, before.now);
  ForgetTensorPeak();
  EXPECT_EQ(UsedTensorMemory().peak, before.now);
}

TEST_F(TensorMemory, GoesBackBeyondTheMost) {
  // Memory that nobody touches takes no room on the machine.
  AddressOf(kKeptTensorBytesMax / 4 + 16);
  EXPECT_LE(KeptTensorBytes(), kKeptTensorBytesMax);
  {
    std::vector<at::Tensor> tensors;
    for (int i = 0; i < 5; ++i) tensors.push_back(at::empty({kKeptTensorBytesMax / 16}));
  }
  EXPECT_LE(KeptTensorBytes(), kKeptTensorBytesMax);
  EXPECT_GE(KeptTensorBytes(), kKeptTensorBytesMax / 2);
}
#endif

}  // namespace
}  // namespace verbatim
