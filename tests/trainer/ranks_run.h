// Runs on ranks that are threads of the test's process, each with an experiment of its own.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "recorder/content_digest.h"
#include "store/safetensors.h"
#include "tests/trainer/memory_network.h"
#include "tests/trainer/random_delays.h"
#include "tests/trainer/small_run.h"
#include "trainer/layer_file.h"

namespace verbatim {

/// The stem (with batch norm) and the head delayed by one number, blocks between by another.
inline Spec DelayedRanksSpec(std::int64_t ends, std::int64_t middle) {
  Spec spec = SmallSpec();
  spec.training.subnets = 24;
  spec.training.microbatches = 2;
  spec.supernet.stem.delay = ends;
  spec.supernet.head.delay = ends;
  spec.supernet.blocks[0].delay = middle;
  spec.supernet.blocks[2].delay = middle;
  return spec;
}

/// What every rank of a run left.
struct RanksRun {
  std::vector<TrainingOutcome> outcomes;
  std::vector<SubnetRow> rows;      ///< by seq
  std::vector<std::string> layers;  ///< of rank 0: every layer's state as a checkpoint file
};

/// How a test's runs differ from plain training.
struct RanksSetting {
  std::uint32_t seed = 1;
  SendFilter filter;
  bool is_observed = true;
  /// May change a rank's options and layers before it trains.
  std::function<void(int rank, TrainingOptions& options, Experiment& experiment)> prepare;
  std::function<void(int rank)> on_end;  ///< when a rank has ended
};

inline std::vector<std::string> LayerFiles(const Experiment& experiment) {
  std::vector<std::string> files;
  for (const Layer& layer : experiment.space.layers()) {
    const StoredTensors stored =
        DescribeLayerState(layer, experiment.spec.training.optimizer, experiment.layers[layer.id]);
    const EncodedTensors encoded = EncodeSafetensors(stored);
    std::string bytes;
    for (const std::string_view piece : encoded.Pieces()) bytes += piece;
    files.push_back(std::move(bytes));
  }
  return files;
}

inline TrainingOutcome TrainOneRank(Experiment& experiment, const TrainingOptions& options) {
  const Result<TrainingOutcome> outcome = Train(experiment, options);
  EXPECT_TRUE(outcome.has_value()) << outcome.error().message;
  return outcome.value_or(TrainingOutcome{RunStatus::kFailed, "not begun", 0, 0, 0});
}

inline RanksRun TrainOnRanks(const Spec& spec, int ranks, const TrainingOptions& options,
                             const RanksSetting& setting = {}) {
  MemoryNetworks networks(ranks, setting.seed, setting.filter);
  std::vector<Experiment> experiments;
  for (int rank = 0; rank < ranks; ++rank) experiments.push_back(MakeExperiment(spec));
  RanksRun run;
  run.outcomes.resize(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const std::unique_ptr<Network> network = networks.Connect(rank);
      RandomDelays delays(setting.seed + static_cast<std::uint32_t>(rank));
      TrainingOptions own = options;
      own.network = network.get();
      own.is_observed = setting.is_observed;
      own.probe = &delays;
      Experiment& experiment = experiments[rank];
      if (setting.prepare) setting.prepare(rank, own, experiment);
      if (rank == 0 && setting.is_observed) {
        run.rows = TrainedRows(experiment, own, &run.outcomes[0]);
      } else {
        run.outcomes[rank] = TrainOneRank(experiment, own);
      }
      if (setting.on_end) setting.on_end(rank);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const bool is_whole = run.outcomes[0].status != RunStatus::kFailed;
  if (is_whole) run.layers = LayerFiles(experiments[0]);
  return run;
}

/// Trains this experiment alone until `subnets` have finished.
inline void TrainUntil(std::int64_t subnets, Experiment& experiment) {
  std::atomic<bool> stop{false};
  TrainingOptions options = SequentialOptions();
  options.stop = &stop;
  options.on_progress = [&](std::int64_t finished, float) { stop = finished == subnets; };
  EXPECT_EQ(TrainOneRank(experiment, options).subnets, subnets);
}

/// The content of every subnet.
inline std::vector<std::string> ContentsOf(const std::vector<SubnetRow>& rows) {
  std::vector<std::string> contents;
  for (const SubnetRow& row : rows) contents.push_back(EncodeSubnetContent(row));
  return contents;
}

/// What one process leaves.
inline RanksRun TrainAlone(const Spec& spec, const TrainingOptions& options) {
  Experiment experiment = MakeExperiment(spec);
  RanksRun run;
  run.outcomes.resize(1);
  run.rows = TrainedRows(experiment, options, &run.outcomes[0]);
  run.layers = LayerFiles(experiment);
  return run;
}

}  // namespace verbatim
