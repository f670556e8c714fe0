// What a random sample without a finding says of the whole.
#pragma once

#include <cstdint>

namespace verbatim {

inline constexpr double kConfidence = 0.95;

/// The smallest share of faulty subnets that a draw of `drawn` out of `recorded` subnets, without
/// replacement, meets at least once with a probability of `confidence`: 1 - C(recorded - faulty,
/// drawn) / C(recorded, drawn) >= confidence (the hypergeometric distribution; in auditing known
/// as discovery sampling). 1 where nothing is drawn. 0 <= drawn <= recorded, recorded >= 1.
double DetectableShare(std::int64_t recorded, std::int64_t drawn, double confidence = kConfidence);

}  // namespace verbatim
