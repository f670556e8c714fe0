// Reads a spec's part `supernet`: stem, blocks with their candidates, head.
#pragma once

#include "supernet/object_reader.h"
#include "supernet/spec.h"

namespace verbatim {

/// Reports to `errors` what is wrong with it; `*supernet` is then incomplete.
void ReadSupernet(const JsonNode& node, ReadErrors* errors, SupernetSpec* supernet);

}  // namespace verbatim
