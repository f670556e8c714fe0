// Proves that Philox4x32-10 is the published one, by the known answers that the Random123 library
// publishes for it (kat_vectors, "philox4x32 10").
#include "base/philox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace verbatim {
namespace {

using testing::ElementsAreArray;

TEST(Philox, GivesTheKnownAnswers) {
  const struct {
    PhiloxBlock counter;
    std::uint32_t key0, key1;
    PhiloxBlock answer;
  } kCases[] = {
      {{{0, 0, 0, 0}}, 0, 0, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
      {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
       0xffffffff,
       0xffffffff,
       {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
      {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
       0xa4093822,
       0x299f31d0,
       {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
  };
  for (const auto& c : kCases) {
    EXPECT_THAT(Philox4x32(c.counter, c.key0, c.key1).word, ElementsAreArray(c.answer.word));
  }
}

TEST(Philox, EveryBitOfCounterAndKeyMatters) {
  const PhiloxBlock base = Philox4x32({{0, 0, 0, 0}}, 0, 0);
  for (int bit = 0; bit < 192; ++bit) {
    std::uint32_t input[6] = {};
    input[bit / 32] = 1u << bit % 32;
    const PhiloxBlock block =
        Philox4x32({{input[0], input[1], input[2], input[3]}}, input[4], input[5]);
    for (int i = 0; i < 4; ++i) EXPECT_NE(block.word[i], base.word[i]) << "bit " << bit;
  }
}

}  // namespace
}  // namespace verbatim
