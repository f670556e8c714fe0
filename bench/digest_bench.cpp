// Speed of digests on the CPU: tensors from 64 bytes to 64 MiB, and a layer of two tensors.
// Bytes per second count processor time.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "recorder/digest.h"

namespace verbatim {
namespace {

void Sizes(benchmark::internal::Benchmark* benchmark) {
  for (int bytes : {64, 4096, 65536, 4 << 20, 64 << 20}) benchmark->Arg(bytes);
}

void DigestTensorOf(benchmark::State& state) {
  const std::vector<float> data(static_cast<std::size_t>(state.range(0)) / sizeof(float), 1.5f);
  const std::int64_t shape[] = {static_cast<std::int64_t>(data.size())};
  for (auto _ : state) {
    benchmark::DoNotOptimize(DigestTensor({DType::kFloat32, shape, data.data()}));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(DigestTensorOf)->Apply(Sizes);

void DigestOfALayer(benchmark::State& state) {
  const std::vector<float> weight(256 * 256, 0.5f), bias(256, 0.5f);
  const std::int64_t weight_shape[] = {256, 256}, bias_shape[] = {256};
  for (auto _ : state) {
    NamedTensorsDigest layer;
    layer.Add("weight", DigestTensor({DType::kFloat32, weight_shape, weight.data()}));
    layer.Add("bias", DigestTensor({DType::kFloat32, bias_shape, bias.data()}));
    benchmark::DoNotOptimize(layer.Finish());
  }
  state.SetBytesProcessed(state.iterations() *
                          static_cast<std::int64_t>(4 * (weight.size() + bias.size())));
}
BENCHMARK(DigestOfALayer);

}  // namespace
}  // namespace verbatim

BENCHMARK_MAIN();
