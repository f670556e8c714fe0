// Every target of fuzz/ on its corpus, its seeds and random changes of both, without libFuzzer:
// what the fuzzers once found stays found, and a compiler other than clang reads the same bytes.
// VERBATIM_FUZZ_SEED and VERBATIM_FUZZ_RUNS choose other changes, and more of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <sstream>

#include "fuzz/target.h"

namespace verbatim::fuzz {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> Inputs(const Target& target) {
  std::vector<fs::path> paths;
  const fs::path corpus = fs::path(VERBATIM_CORPUS_FOLDER) / target.name;
  if (fs::exists(corpus)) {
    for (const auto& entry : fs::directory_iterator(corpus)) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> inputs = {""};
  for (const fs::path& path : paths) {
    std::ostringstream bytes;
    bytes << std::ifstream(path, std::ios::binary).rdbuf();
    inputs.push_back(bytes.str());
  }
  if (target.seeds == nullptr) return inputs;
  for (std::string& seed : target.seeds()) inputs.push_back(std::move(seed));
  return inputs;
}

std::uint64_t Number(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

/// Changes like libFuzzer's own: bits, bytes, numbers, and pieces taken out, repeated or brought
/// in.
class Mutator {
 public:
  Mutator(std::uint64_t seed, const std::vector<std::string>& inputs)
      : random_(seed), inputs_(inputs) {}

  std::string Next() {
    std::string text = inputs_[Below(inputs_.size())];
    for (std::size_t i = 0, n = 1 + Below(4); i < n; ++i) Change(text);
    return text;
  }

 private:
  std::size_t Below(std::size_t bound) { return random_() % bound; }

  void Change(std::string& text) {
    if (text.empty()) text = "0";
    const std::size_t at = Below(text.size());
    const std::size_t length = std::min<std::size_t>(1 + Below(64), text.size() - at);
    switch (Below(6)) {
      case 0:
        text[at] = static_cast<char>(text[at] ^ 1 << Below(8));
        return;
      case 1:
        text[at] = static_cast<char>(Below(256));
        return;
      case 2:
        text.erase(at, length);
        return;
      case 3:
        text.insert(at, text.substr(Below(text.size()), length));
        return;
      case 4:
        text.insert(at, kPieces[Below(std::size(kPieces))]);
        return;
      default:
        text.resize(at);
    }
  }

  static constexpr const char* kPieces[] = {"18446744073709551615", "-1",   "1e308", "{", "[", "\"",
                                            "\xff\xff\xff\xff",     "\x80", "}",     "]"};

  std::mt19937_64 random_;
  const std::vector<std::string>& inputs_;
};

class FuzzTarget : public ::testing::TestWithParam<Target> {};

TEST_P(FuzzTarget, TakesItsCorpus) {
  const auto inputs = Inputs(GetParam());
  ASSERT_GE(inputs.size(), 2u) << "only the empty input";
  for (const std::string& input : inputs) GetParam().run(input);
}

TEST_P(FuzzTarget, TakesChangedInputs) {
  const std::uint64_t seed = Number("VERBATIM_FUZZ_SEED", 1);
  const std::uint64_t runs = Number("VERBATIM_FUZZ_RUNS", 2000);
  std::cout << "again with: VERBATIM_FUZZ_SEED=" << seed << " VERBATIM_FUZZ_RUNS=" << runs
            << " fuzz_test --gtest_filter=*TakesChangedInputs/" << GetParam().name << std::endl;
  const auto inputs = Inputs(GetParam());
  Mutator mutator(seed, inputs);
  for (std::uint64_t i = 0; i < runs; ++i) GetParam().run(mutator.Next());
}

INSTANTIATE_TEST_SUITE_P(All, FuzzTarget, ::testing::ValuesIn(Targets().begin(), Targets().end()),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace verbatim::fuzz
