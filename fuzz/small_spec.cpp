#include "fuzz/small_spec.h"

#include "tests/verify/sample_run.h"

namespace verbatim::fuzz {

const Spec& SmallSpec() {
  static const Spec spec = SampleSpec();
  return spec;
}

const SearchSpace& SmallSpace() {
  static const SearchSpace space = *SearchSpace::Build(SmallSpec(), {4, 0, 0}, 3);
  return space;
}

}  // namespace verbatim::fuzz
