#include "trainer/layer_walk.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "supernet/stream.h"

namespace verbatim {
namespace {

at::Tensor FirstInput(const Experiment& experiment) {
  const TrainingSpec& training = experiment.spec.training;
  const RowRange rows = MicrobatchRows(training.batch, training.microbatches, 0);
  return experiment.dataset->TrainingBatch(experiment.dataset->SamplesOf(0), experiment.device)
      .inputs.narrow(0, rows.first, rows.size());
}

}  // namespace

Status WalkLayers(const Experiment& experiment,
                  const std::function<Result<at::Tensor>(const Layer&, const at::Tensor&)>& visit) {
  const SearchSpace& space = experiment.space;
  at::Tensor input = FirstInput(experiment);
  for (int position = 0; position < space.positions(); ++position) {
    Choices choices(static_cast<std::size_t>(space.blocks()));
    at::Tensor output;
    for (int candidate = 0; candidate < space.candidates(position); ++candidate) {
      if (candidate > 0) choices[position - 1] = static_cast<std::uint16_t>(candidate);
      ASSIGN_OR_RETURN(at::Tensor given, visit(space.LayerAt(position, choices), input));
      if (given.defined()) output = std::move(given);
    }
    VERBATIM_CHECK(output.defined(), "position {} gave no output", position);
    input = std::move(output);
  }
  return {};
}

RandomKey FirstDropoutKey(const Experiment& experiment, const Layer& layer) {
  return {experiment.spec.seed, RandomPurpose::kDropout, 0, static_cast<std::uint32_t>(layer.id),
          0};
}

}  // namespace verbatim
