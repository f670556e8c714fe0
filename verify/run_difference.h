// Differences between two executions outside their subnets: data set, layers, initial weights,
// evaluations. Each has class, place, values and cause; only the data set's has no place.
#pragma once

#include <optional>
#include <vector>

#include "verify/difference.h"

namespace verbatim {

std::optional<Difference> CompareDataSets(const Digest& recorded, const Digest& here);

/// The first layer that is another one (name, place, operator, whether versioned), or their number.
/// Initial weights are not compared.
std::optional<Difference> CompareLayouts(const std::vector<LayerRow>& recorded,
                                         const std::vector<LayerRow>& here);

/// The first layer whose initial weights differ, and how many more do. Layouts are equal.
std::optional<Difference> CompareInitialWeights(const std::vector<LayerRow>& recorded,
                                                const std::vector<LayerRow>& here);

std::optional<Difference> CompareEvaluations(const std::vector<EvaluationRow>& recorded,
                                             const std::vector<EvaluationRow>& here);

}  // namespace verbatim
