// Pins how ranges of subnets, and the spread of a difference, are written.
#include "verify/comparison_text.h"

#include <gtest/gtest.h>

namespace verbatim {
namespace {

TEST(RangesText, IsShortAndExact) {
  const struct {
    std::vector<SeqRange> ranges;
    const char* text;
  } cases[] = {
      {{}, ""},
      {{{3, 3}}, "3"},
      {{{3, 9}}, "3–9"},
      {{{151, 159}, {161, 299}}, "151–299 but 160"},
      {{{151, 159}, {161, 200}, {203, 299}}, "151–299 but 160, 201–202"},
      {{{3, 3}, {5, 5}}, "3, 5"},
      {{{0, 1}, {100, 101}}, "0–1, 100–101"},
      {{{0, 0},
        {2, 2},
        {4, 4},
        {6, 6},
        {8, 8},
        {10, 10},
        {12, 12},
        {14, 14},
        {16, 16},
        {18, 18},
        {20, 20},
        {22, 22}},
       "0, 2, 4, 6, 8, 10, 12, 14, 16, 18 and 2 ranges more"},
  };
  for (const auto& test : cases) EXPECT_EQ(RangesText(test.ranges), test.text);
}

TEST(ComparisonText, TellsOriginsTaintAndItsSpread) {
  EXPECT_EQ(ComparisonText({}), "");
  Comparison comparison;
  comparison.subnets_compared = 100;
  comparison.accesses_compared = 800;
  comparison.accesses_different = 61;
  Difference origin;
  origin.seq = 69;
  origin.layer = 3;
  origin.layer_name = "block1.2";
  origin.phase = Phase::kUpdate;
  origin.what = "weights";
  comparison.origins = {origin};
  comparison.origin_count = 12;
  comparison.tainted = {{75, 79}, {81, 99}};
  comparison.tainted_count = 24;
  comparison.layers = {{3, "block1.2", 69, 5}, {0, "stem", 75, 24}};
  EXPECT_EQ(ComparisonText(comparison),
            "\n12 origins\n"
            "  subnet 69, layer block1.2, update: weights (computation)\n"
            "  and 11 more\n"
            "\n24 tainted subnets of 100: 75–99 but 80\n"
            "  per tenth of the run 0 0 0 0 0 0 0 5 9 10\n"
            "\n61 of 800 accesses differ, in 2 layers\n"
            "  block1.2     from subnet 69, 5 accesses\n"
            "  stem         from subnet 75, 24 accesses\n");
}

}  // namespace
}  // namespace verbatim
