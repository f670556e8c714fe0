// Proves how expected failures travel: kinds, exit codes, and the two macros that pass them on.
#include "base/status.h"

#include <gtest/gtest.h>

#include <memory>

namespace verbatim {
namespace {

Result<int> Half(int number) {
  if (number % 2 != 0) return UsageError("odd", "give an even number");
  return number / 2;
}

Result<int> Quarter(int number) {
  ASSIGN_OR_RETURN(const int half, Half(number));
  ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}

Status BothEven(int first, int second) {
  RETURN_IF_ERROR(Half(first));
  RETURN_IF_ERROR(Half(second));
  return {};
}

Result<std::unique_ptr<int>> Boxed(int number) {
  ASSIGN_OR_RETURN(auto box, Result<std::unique_ptr<int>>(std::make_unique<int>(number)));
  return box;
}

TEST(Status, KindsHaveTheDocumentedExitCodes) {
  EXPECT_EQ(ExitCode(ErrorKind::kUsage), 2);
  EXPECT_EQ(ExitCode(ErrorKind::kBadInput), 3);
  EXPECT_EQ(ExitCode(ErrorKind::kFailed), 4);
}

TEST(Status, FactoriesSetKindMessageAndHint) {
  const Status usage = UsageError("a", "b"), bad_input = BadInput("c"), failed = Failed("d");
  ASSERT_FALSE(usage);
  EXPECT_EQ(usage.error().kind, ErrorKind::kUsage);
  EXPECT_EQ(usage.error().message, "a");
  EXPECT_EQ(usage.error().hint, "b");
  ASSERT_FALSE(bad_input);
  EXPECT_EQ(bad_input.error().kind, ErrorKind::kBadInput);
  EXPECT_EQ(bad_input.error().hint, "");
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::kFailed);
}

TEST(Status, DefaultIsSuccess) {
  EXPECT_TRUE(Status{});
}

TEST(AssignOrReturn, GivesTheValueOrPassesTheErrorOn) {
  EXPECT_EQ(Quarter(12), 3);
  EXPECT_EQ(Quarter(6).error().message, "odd");
  EXPECT_EQ(Quarter(3).error().hint, "give an even number");
}

TEST(AssignOrReturn, MovesWhatCannotBeCopied) {
  EXPECT_EQ(**Boxed(5), 5);
}

TEST(ReturnIfError, StopsAtTheFirstError) {
  EXPECT_TRUE(BothEven(2, 4));
  EXPECT_FALSE(BothEven(1, 4));
  EXPECT_EQ(BothEven(2, 5).error().kind, ErrorKind::kUsage);
}

}  // namespace
}  // namespace verbatim
