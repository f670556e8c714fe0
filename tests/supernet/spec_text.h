// Specs for tests: a small valid one, and changed copies of it.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "supernet/search_space.h"
#include "supernet/spec.h"

namespace verbatim {

/// The parts that a spec must have, one per line from line 2, so that errors have known places.
struct SpecText {
  std::string top = R"("seed": 1)";
  std::string data = R"({"format": "idx", "folder": "digits"})";
  std::string stem = R"({"op": "conv", "channels": 8})";
  std::string block = R"({"candidates": [{"op": "conv"}, {"op": "skip"}]})";
  std::string head = R"({"op": "classifier"})";
  std::string sizes = R"("subnets": 10, "batch": 8)";
  std::string optimizer = R"({"kind": "sgd"})";
  std::string lr = R"({"kind": "constant", "base": 0.1})";

  std::string Text() const {
    return "{\"name\": \"small\",\n" + top + ",\n\"data\": " + data +
           ",\n\"supernet\": {\n\"stem\": " + stem + ",\n\"blocks\": [\n" + block +
           "],\n\"head\": " + head + "},\n\"training\": {\n" + sizes +
           ",\n\"optimizer\": " + optimizer + ",\n\"lr\": " + lr + "}}\n";
  }
};

inline Spec ParseOrDie(const std::string& text) {
  auto spec = ParseSpec(text, "test.json");
  if (!spec) ADD_FAILURE() << spec.error().message << "\n" << spec.error().hint;
  return spec ? *spec : Spec{};
}

/// The small spec with these blocks, given as JSON: their input has 8 channels.
inline SpecText WithBlock(const std::string& block) {
  SpecText text;
  text.block = block;
  return text;
}

inline SearchSpace BuildOrDie(const Spec& spec, ActivationShape input = {3, 8, 8},
                              std::int64_t classes = 10) {
  auto space = SearchSpace::Build(spec, input, classes);
  if (!space) ADD_FAILURE() << space.error().message << "\n" << space.error().hint;
  return space ? *space : SearchSpace{};
}

}  // namespace verbatim
