#include "base/check.h"
#include "fuzz/target.h"
#include "supernet/json_reader.h"

namespace verbatim::fuzz {
namespace {

void CheckNode(const JsonNode& node, int depth) {
  VERBATIM_CHECK(depth <= kMaxJsonDepth, "depth {}", depth);
  VERBATIM_CHECK(node.position.line >= 1 && node.position.column >= 1, "a value without a place");
  for (const JsonNode& child : node.children) CheckNode(child, depth + 1);
}

}  // namespace

void RunJson(std::string_view input) {
  if (const auto node = ParseJson(input, "input")) CheckNode(*node, 0);
}

}  // namespace verbatim::fuzz
