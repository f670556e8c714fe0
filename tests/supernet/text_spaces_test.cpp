// Proves that the shipped text spaces have the sizes they are named for, and that a file of subnets
// as NASPipe writes them drives one.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>

#include "supernet/stream.h"
#include "tests/supernet/spec_text.h"
#include "tests/temporary_folder.h"

namespace verbatim {
namespace {

Spec ReadExample(const std::string& name) {
  const auto spec = ReadSpec(std::filesystem::path(VERBATIM_EXAMPLES) / "spaces" / name);
  EXPECT_TRUE(spec.has_value()) << spec.error().message;
  return *spec;
}

SearchSpace BuildText(const Spec& spec) {
  return BuildOrDie(spec, ShapeOfSpec(spec.data).value(), kByteClasses);
}

TEST(TextSpaces, HaveTheirBlocksAndCandidates) {
  const struct {
    const char* file;
    int blocks;  ///< of each part
    int encoder;
    int decoder;
  } cases[] = {{"c0.json", 24, 92, 96},
               {"c1.json", 24, 69, 72},
               {"c2.json", 24, 46, 48},
               {"c3.json", 24, 23, 24},
               {"c3-small.json", 4, 23, 24}};
  for (const auto& c : cases) {
    const SearchSpace space = BuildText(ReadExample(c.file));
    ASSERT_EQ(space.blocks(), 2 * c.blocks) << c.file;
    for (int position = 1; position <= 2 * c.blocks; ++position) {
      EXPECT_EQ(space.candidates(position), position <= c.blocks ? c.encoder : c.decoder)
          << c.file << ", position " << position;
    }
  }
}

TEST(TextSpaces, NoTwoCandidatesOfABlockAreTheSame) {
  for (const char* file : {"c0.json", "c1.json", "c2.json", "c3.json"}) {
    for (const BlockSpec& block : ReadExample(file).supernet.blocks) {
      for (std::size_t i = 0; i < block.candidates.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
          EXPECT_NE(block.candidates[i], block.candidates[j]) << file << " " << i << " " << j;
        }
      }
    }
  }
}

/// One object per line: the choices under "op", and under "part" how many blocks each of its stages
/// had, which a run here does not follow.
TEST(TextSpaces, NaspipesSubnetFilesDriveThem) {
  const test::TemporaryFolder folder;
  Spec spec = ReadExample("c3.json");
  spec.training.subnets = 40;
  std::vector<Choices> written;
  std::ofstream file(folder / "subnets.jsonl");
  for (int subnet = 0; subnet < 40; ++subnet) {
    Choices choices;
    for (int block = 0; block < 48; ++block) {
      choices.push_back(static_cast<std::uint16_t>((7 * subnet + 5 * block) % 23));
    }
    file << fmt::format("{{\"op\": [{}], \"part\": [12, 12, 12, 12]}}\n", fmt::join(choices, ", "));
    written.push_back(choices);
  }
  file.close();
  spec.sampler = {.kind = SamplerKind::kList, .file = "subnets.jsonl"};
  const auto sampler = MakeSampler(spec, BuildText(spec), folder.path());
  ASSERT_TRUE(sampler.has_value()) << sampler.error().message;
  for (int seq = 0; seq < 40; ++seq) EXPECT_EQ((*sampler)->Draw(seq), written[seq]) << seq;
}

}  // namespace
}  // namespace verbatim
