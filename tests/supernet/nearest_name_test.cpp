// Proves edit distances, and when a suggestion is made.
#include "supernet/nearest_name.h"

#include <gtest/gtest.h>

namespace verbatim {
namespace {

TEST(EditDistance, CountsInsertionsDeletionsSubstitutionsAndSwaps) {
  const struct {
    std::string_view a, b;
    std::size_t distance;
  } cases[] = {{"", "", 0},
               {"", "abc", 3},
               {"kernel", "kernel", 0},
               {"kernal", "kernel", 1},
               {"kernle", "kernel", 1},
               {"ca", "abc", 3},
               {"sitting", "kitten", 3},
               {"bacth", "batch", 1}};
  for (const auto& c : cases) {
    EXPECT_EQ(EditDistance(c.a, c.b), c.distance) << c.a << " " << c.b;
    EXPECT_EQ(EditDistance(c.b, c.a), c.distance) << c.b << " " << c.a;
  }
}

TEST(SuggestName, NamesTheNearestOrListsAll) {
  const std::vector<std::string_view> names = {"op", "kernel", "dilation"};
  EXPECT_EQ(SuggestName("kernal", names), "did you mean \"kernel\"?");
  EXPECT_EQ(SuggestName("dialtoin", names), "did you mean \"dilation\"?");
  EXPECT_EQ(SuggestName("width", names), "allowed: op, kernel, dilation");
  EXPECT_EQ(SuggestName("", names), "allowed: op, kernel, dilation");
  EXPECT_EQ(SuggestName(std::string(100000, 'k'), names), "allowed: op, kernel, dilation");
}

}  // namespace
}  // namespace verbatim
