// A spec, and the space that it lays out, for targets that read what belongs to one.
#pragma once

#include "supernet/search_space.h"
#include "supernet/spec.h"

namespace verbatim::fuzz {

/// Small: three blocks of three candidates on vectors of four features.
const Spec& SmallSpec();
const SearchSpace& SmallSpace();

}  // namespace verbatim::fuzz
