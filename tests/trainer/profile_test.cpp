// Proves that a measurement covers every layer, costs nothing where there is nothing to do, and
// leaves the weights alone.
#include "trainer/profile.h"

#include <gtest/gtest.h>

#include "tests/trainer/small_run.h"

namespace verbatim {
namespace {

TEST(MeasureCosts, MeasuresEveryLayer) {
  Spec spec = SmallSpec();
  spec.training.microbatches = 3;
  Experiment experiment = MakeExperiment(spec);
  const auto costs = MeasureCosts(experiment, {.repeat = 3, .on_progress = {}});
  ASSERT_TRUE(costs.has_value()) << costs.error().message;
  EXPECT_EQ(costs->source, CostSource::kMeasured);
  const CostTable counted = AnalyticCosts(experiment.space, spec);
  ASSERT_EQ(costs->layers.size(), counted.layers.size());
  for (const Layer& layer : experiment.space.layers()) {
    SCOPED_TRACE(layer.name);
    const LayerCost& cost = costs->layers[layer.id];
    EXPECT_GT(cost.forward, 0.0);
    EXPECT_GT(cost.backward, 0.0);
    EXPECT_EQ(cost.update > 0.0, layer.IsVersioned());
    LayerCost bytes_only = counted.layers[layer.id];
    bytes_only.forward = cost.forward;
    bytes_only.backward = cost.backward;
    bytes_only.update = cost.update;
    EXPECT_EQ(cost, bytes_only);
  }
}

TEST(MeasureCosts, AFrozenStemHasNoBackwardAndNoUpdate) {
  Spec spec = SmallSpec();
  spec.supernet.stem.trainable = false;
  Experiment experiment = MakeExperiment(spec);
  const auto costs = MeasureCosts(experiment, {.repeat = 1, .on_progress = {}});
  ASSERT_TRUE(costs.has_value()) << costs.error().message;
  EXPECT_GT(costs->layers[0].forward, 0.0);
  EXPECT_EQ(costs->layers[0].backward, 0.0);
  EXPECT_EQ(costs->layers[0].update, 0.0);
}

TEST(MeasureCosts, LeavesTheWeightsAlone) {
  Spec spec = SmallSpec();
  spec.supernet.head.delay = 2;
  const Experiment before = MakeExperiment(spec);
  Experiment experiment = MakeExperiment(spec);
  ASSERT_TRUE(MeasureCosts(experiment, {.repeat = 2, .on_progress = {}}).has_value());
  for (std::size_t id = 0; id < before.layers.size(); ++id) {
    for (std::size_t i = 0; i < before.layers[id].parameters.size(); ++i) {
      EXPECT_TRUE(experiment.layers[id].parameters[i].equal(before.layers[id].parameters[i]))
          << "layer " << id << ", parameter " << i;
    }
  }
}

TEST(MeasureCosts, ReportsProgressAndStopsOnRequest) {
  Experiment experiment = MakeExperiment(SmallSpec());
  const auto layers = std::ssize(experiment.space.layers());
  std::int64_t last = 0;
  ASSERT_TRUE(MeasureCosts(experiment, {.repeat = 2,
                                        .on_progress =
                                            [&](std::int64_t done) {
                                              EXPECT_EQ(done, last + 1);
                                              last = done;
                                              return true;
                                            }})
                  .has_value());
  EXPECT_EQ(last, 3 * layers);
  const auto stopped = MeasureCosts(
      experiment, {.repeat = 2, .on_progress = [&](std::int64_t done) { return done < 5; }});
  ASSERT_FALSE(stopped.has_value());
  EXPECT_EQ(stopped.error().kind, ErrorKind::kFailed);
  EXPECT_EQ(stopped.error().message, "stopped on request");
}

}  // namespace
}  // namespace verbatim
