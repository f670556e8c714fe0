#include "trainer/stage_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace verbatim {
namespace {

using ::testing::ElementsAre;

std::vector<at::Device> Gpus(int count) {
  std::vector<at::Device> devices;
  for (int i = 0; i < count; ++i) {
    devices.emplace_back(at::kCUDA, static_cast<c10::DeviceIndex>(i));
  }
  return devices;
}

/// Indices of the devices of stages begin … end - 1.
std::vector<int> Dealt(int devices, int begin, int end) {
  const StageDevices dealt(Gpus(devices), begin, end);
  std::vector<int> indices;
  for (int stage = begin; stage < end; ++stage) indices.push_back(dealt.Of(stage).index());
  return indices;
}

TEST(StageDevicesTest, StagesAreDealtOutInOrder) {
  EXPECT_THAT(Dealt(1, 0, 3), ElementsAre(0, 0, 0));
  EXPECT_THAT(Dealt(2, 0, 4), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(Dealt(3, 0, 4), ElementsAre(0, 0, 1, 2));
  EXPECT_THAT(Dealt(4, 0, 4), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Dealt(8, 0, 2), ElementsAre(0, 1));
  EXPECT_THAT(Dealt(2, 5, 8), ElementsAre(0, 0, 1)) << "a later rank's stages";
}

TEST(ShareOfTest, AHostsRanksShareItsDevices) {
  const auto share = [](int devices, LocalRank local) {
    std::vector<int> indices;
    for (const at::Device device : ShareOf(Gpus(devices), local)) indices.push_back(device.index());
    return indices;
  };
  EXPECT_THAT(share(4, {0, 1}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(share(4, {2, 4}), ElementsAre(2)) << "the GPU of torchrun's LOCAL_RANK";
  EXPECT_THAT(share(8, {1, 4}), ElementsAre(2, 3));
  EXPECT_THAT(share(5, {0, 2}), ElementsAre(0, 1));
  EXPECT_THAT(share(5, {1, 2}), ElementsAre(2, 3, 4));
  EXPECT_THAT(share(1, {3, 4}), ElementsAre(0)) << "each sees its own";
}

TEST(StageDevicesTest, EveryDealIsContiguousAndEven) {
  for (int devices = 1; devices <= 9; ++devices) {
    for (int stages = 1; stages <= 20; ++stages) {
      const std::vector<int> dealt = Dealt(devices, 0, stages);
      EXPECT_TRUE(std::ranges::is_sorted(dealt));
      std::vector<std::int64_t> shares;
      for (int device = 0; device < std::min(devices, stages); ++device) {
        shares.push_back(std::ranges::count(dealt, device));
      }
      EXPECT_LE(std::ranges::max(shares) - std::ranges::min(shares), 1)
          << stages << " stages over " << devices;
    }
  }
}

TEST(StageDevicesDeathTest, AnotherRanksStageHasNone) {
  const StageDevices dealt(Gpus(1), 2, 4);
  EXPECT_DEATH(dealt.Of(1), "stage 1 is elsewhere");
  EXPECT_DEATH(dealt.Of(4), "stage 4 is elsewhere");
}

TEST(NameOfTest, ARecordNamesOneDeviceOrTheKind) {
  EXPECT_EQ(NameOf(std::vector<at::Device>{at::kCPU}), "cpu");
  EXPECT_EQ(NameOf(Gpus(1)), "cuda:0");
  EXPECT_EQ(NameOf(Gpus(2)), "cuda");
}

}  // namespace
}  // namespace verbatim
