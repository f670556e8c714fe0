// On a machine with a GPU: what is made there has the CPU's bits, and streams order what they
// should. scripts/device-check runs it; ctest does not, for it fails where there is no device.
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/trainer/small_run.h"
#include "trainer/cuda/cuda_device.h"
#include "trainer/cuda/nccl_payloads.h"
#include "trainer/device_stream.h"
#include "trainer/evaluation.h"
#include "trainer/layer_handover.h"
#include "trainer/operators.h"
#include "trainer/tensor_digest.h"

namespace verbatim {
namespace {

class CudaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ConfigureDeterminism();
    ASSERT_GT(CudaDeviceCount(), 0) << CudaObstacle();
  }

  static Experiment OnGpu(const Spec& spec, std::vector<at::Device> devices,
                          LayersHome home = LayersHome::kDevice) {
    auto experiment =
        PrepareExperiment(spec, VERBATIM_EXAMPLES, std::nullopt, std::move(devices), home);
    EXPECT_TRUE(experiment.has_value()) << experiment.error().message;
    return *std::move(experiment);
  }

  const at::Device device_{at::kCUDA, 0};
};

TEST_F(CudaTest, DigestsHaveTheCpusBits) {
  for (const std::int64_t size : {0, 1, 3, 255, 16384, 16385, 100003}) {
    const at::Tensor tensor = at::arange(size, at::kFloat);
    EXPECT_EQ(TensorDigest(tensor.to(device_)), TensorDigest(tensor)) << size;
  }
  const at::Tensor strided = at::arange(60, at::kLong).view({3, 4, 5}).transpose(0, 2);
  EXPECT_EQ(TensorDigest(strided.to(device_)), TensorDigest(strided));
}

TEST_F(CudaTest, PendingDigestsAreThereWhenTheirMarkIsReached) {
  const auto stream = OpenDeviceStream(device_);
  std::thread([&] {
    stream->Enter();
    at::Tensor tensor = at::ones({1 << 20}, at::TensorOptions().device(device_));
    PendingDigests digests(2);
    digests.Take(tensor);
    tensor.add_(1.0);  // after the digest, on the same stream
    digests.Take(tensor);
    digests.Fetch();
    Synchronize(stream->Record());
    EXPECT_EQ(digests.At(0), TensorDigest(at::ones({1 << 20})));
    EXPECT_EQ(digests.At(1), TensorDigest(at::full({1 << 20}, 2.0f)));
  }).join();
}

TEST_F(CudaTest, DropoutMasksHaveTheCpusBits) {
  const RandomKey key{7, RandomPurpose::kDropout, 3, 11, 1000};
  for (const std::int64_t size : {1, 2, 5, 4096, 1 << 20, (1 << 20) + 3}) {
    const at::Tensor like = at::empty({size}, at::kFloat);
    const at::Tensor mask = DropoutMask(like.to(device_), 0.3, key);
    EXPECT_TRUE(mask.to(at::kCPU).equal(DropoutMask(like, 0.3, key))) << size;
  }
}

TEST_F(CudaTest, AStreamWaitsForWhatAnotherEnqueued) {
  const auto writer = OpenDeviceStream(device_);
  const auto reader = OpenDeviceStream(device_);
  HandedTensor handed;
  std::thread([&] {
    writer->Enter();
    at::Tensor tensor = at::ones({1 << 24}, at::TensorOptions().device(device_));
    for (int i = 0; i < 200; ++i) tensor.add_(1.0);
    handed = writer->Give(tensor, device_);
  }).join();
  std::thread([&] {
    reader->Enter();
    const at::Tensor copy = reader->Take(handed).clone();
    EXPECT_EQ(TensorDigest(copy), TensorDigest(at::full({1 << 24}, 201.0f)));
  }).join();
}

TEST_F(CudaTest, TensorsCrossDevicesWithTheirStrides) {
  if (CudaDeviceCount() < 2) {
    std::printf("one device: nothing to cross\n");
    return;
  }
  const at::Device other(at::kCUDA, 1);
  const auto from = OpenDeviceStream(device_);
  const auto to = OpenDeviceStream(other);
  HandedTensor handed;
  at::Tensor original;
  std::thread([&] {
    from->Enter();
    original = at::arange(4096, at::TensorOptions().dtype(at::kFloat).device(device_))
                   .view({16, 16, 16})
                   .narrow(0, 1, 8)
                   .transpose(1, 2);
    handed = from->Give(original, other);
  }).join();
  std::thread([&] {
    to->Enter();
    const at::Tensor taken = to->Take(handed);
    EXPECT_EQ(taken.device(), other);
    EXPECT_EQ(taken.strides(), original.strides());
    EXPECT_EQ(TensorDigest(taken), TensorDigest(original));
  }).join();
}

/// Two ranks' ends in one process, on two GPUs.
class TwoEnds {
 public:
  TwoEnds() {
    for (int rank = 0; rank < 2; ++rank) {
      const at::Device device(at::kCUDA, static_cast<c10::DeviceIndex>(rank));
      ends_.push_back(OpenNcclPayloads({rank, 2, device, device, device}, 60'000));
    }
    const std::string from_0 = ends_[0]->Invite(1);
    const std::string from_1 = ends_[1]->Invite(0);
    EXPECT_TRUE(ends_[0]->Open(std::vector<std::string>{"", from_1}).has_value());
    EXPECT_TRUE(ends_[1]->Open(std::vector<std::string>{from_0, ""}).has_value());
    // Both, in turn: neither call waits for the other.
    while (!IsOpen(0) | !IsOpen(1)) std::this_thread::yield();
  }

  DevicePayloads& operator[](int rank) { return *ends_[rank]; }

 private:
  bool IsOpen(int rank) {
    const Result<bool> is_open = ends_[rank]->Poll();
    if (!is_open) throw std::runtime_error(is_open.error().message);
    return *is_open;
  }

  std::vector<std::unique_ptr<DevicePayloads>> ends_;
};

TEST_F(CudaTest, ChannelsCarryTensorsBetweenGpusInTheirOrder) {
  if (CudaDeviceCount() < 2 || !NcclObstacle().empty()) {
    std::printf("no channel in one process: scripts/device-check starts two\n");
    return;
  }
  TwoEnds ends;
  const auto writer = OpenDeviceStream(device_);
  std::vector<at::Tensor> originals;
  std::thread([&] {
    writer->Enter();
    for (int i = 0; i < 50; ++i) {
      originals.push_back(
          at::full({16, 16, 16 + i}, static_cast<float>(i), at::TensorOptions().device(device_))
              .narrow(2, 1, 8)
              .transpose(0, 2));
    }
  }).join();
  for (const PayloadChannel& channel :
       {PayloadChannel{PayloadKind::kForward, 0, 1}, {PayloadKind::kLayer, 0, 1}}) {
    for (const at::Tensor& tensor : originals) {
      ends[0].Send(channel, {{tensor, writer->Record()}, {tensor[0], writer->Record()}});
    }
  }
  // The other channel first: they do not hold each other up.
  for (const PayloadChannel& channel :
       {PayloadChannel{PayloadKind::kLayer, 0, 1}, {PayloadKind::kForward, 0, 1}}) {
    for (const at::Tensor& tensor : originals) {
      const TensorLayout layouts[] = {LayoutOf(tensor), LayoutOf(tensor[0])};
      const ReceivedPayload received = ends[1].Receive(channel, layouts);
      Synchronize(received.ready);
      ASSERT_EQ(received.tensors.size(), 2u);
      EXPECT_EQ(received.tensors[0].device(), at::Device(at::kCUDA, 1));
      EXPECT_EQ(received.tensors[0].strides(), tensor.strides());
      EXPECT_EQ(TensorDigest(received.tensors[0]), TensorDigest(tensor));
      EXPECT_EQ(TensorDigest(received.tensors[1]), TensorDigest(tensor[0]));
    }
  }
}

TEST_F(CudaTest, AReceiveThatNothingComesForIsLetGo) {
  if (CudaDeviceCount() < 2 || !NcclObstacle().empty()) {
    std::printf("no channel in one process: scripts/device-check starts two\n");
    return;
  }
  TwoEnds ends;
  const TensorLayout layout = LayoutOf(at::ones({1 << 20}));
  const ReceivedPayload received =
      ends[1].Receive({PayloadKind::kForward, 0, 1}, std::span(&layout, 1));
  ends[1].Abort();
  Synchronize(received.ready);
  EXPECT_FALSE(ends[1].Poll().value());
}

TEST_F(CudaTest, SmallRunsAreTheSequentialReferences) {
  std::vector<at::Device> all;
  for (int i = 0; i < CudaDeviceCount(); ++i) {
    all.emplace_back(at::kCUDA, static_cast<c10::DeviceIndex>(i));
  }
  for (Spec spec : {SmallSpec(), SmallTextSpec()}) {
    spec.training.microbatches = 3;
    spec.supernet.head.delay = 2;
    Experiment reference = OnGpu(spec, {device_});
    TrainingOptions sequential = SequentialOptions();
    sequential.record_level = RecordLevel::kFull;
    const auto expected = TrainedRows(reference, sequential);
    for (const std::int64_t stages : {1, 2, 5}) {
      Experiment experiment = OnGpu(spec, all);
      TrainingOptions options;
      options.stages = stages;
      options.in_flight = 8;
      options.record_level = RecordLevel::kFull;
      const auto rows = TrainedRows(experiment, options);
      ASSERT_EQ(rows.size(), expected.size());
      for (std::size_t i = 0; i < rows.size(); ++i) {
        EXPECT_EQ(EncodeSubnetContent(rows[i]), EncodeSubnetContent(expected[i]))
            << spec.name << ", " << stages << " stages, subnet " << i;
      }
      EXPECT_EQ(DescribeLayers(experiment), DescribeLayers(reference));
    }
  }
}

TEST_F(CudaTest, RunsInLittleDeviceMemoryAreTheSequentialReferences) {
  for (Spec spec : {SmallSpec(), SmallTextSpec()}) {
    spec.supernet.stem.trainable = false;
    spec.supernet.head.delay = 2;
    Experiment reference = OnGpu(spec, {device_});
    const auto expected = TrainedRows(reference, SequentialOptions());
    for (const std::int64_t stages : {1, 3}) {
      Experiment experiment = OnGpu(spec, {device_}, LayersHome::kHost);
      TrainingOptions options;
      options.stages = stages;
      options.in_flight = 8;
      options.device_memory = *LeastDeviceMemoryOf(experiment, options);
      const auto rows = TrainedRows(experiment, options);
      ASSERT_EQ(rows.size(), expected.size());
      for (std::size_t i = 0; i < rows.size(); ++i) {
        EXPECT_EQ(EncodeSubnetContent(rows[i]), EncodeSubnetContent(expected[i]))
            << spec.name << ", " << stages << " stages, subnet " << i;
      }
      EXPECT_EQ(DescribeLayers(experiment), DescribeLayers(reference));
      for (const LayerState& state : experiment.layers) {
        for (const at::Tensor& parameter : state.parameters) EXPECT_TRUE(parameter.is_cpu());
      }
      const auto evaluated = EvaluateSubnets(experiment, nullptr);
      EXPECT_EQ(evaluated, EvaluateSubnets(reference, nullptr));
    }
  }
}

}  // namespace
}  // namespace verbatim
