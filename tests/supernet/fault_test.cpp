// Every fault has a name that reads back; what is no fault is refused with a hint.
#include "supernet/fault.h"

#include <gtest/gtest.h>

namespace verbatim {
namespace {

TEST(FaultTest, EveryNameReadsBackWithAndWithoutASubnet) {
  const auto names = FaultNames();
  ASSERT_EQ(names.size(), 12u);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string name(names[i]);
    const Fault fault{static_cast<FaultKind>(i), std::nullopt};
    EXPECT_EQ(ParseFault(name).value(), fault);
    EXPECT_EQ(ToString(fault), name);
    if (fault.kind == FaultKind::kTruncatedFile) continue;
    const Fault at_subnet{fault.kind, 12};
    EXPECT_EQ(ParseFault(name + "@12").value(), at_subnet);
    EXPECT_EQ(ToString(at_subnet), name + "@12");
  }
}

TEST(FaultTest, TheLastThreeAreMadeInTheRecord) {
  EXPECT_TRUE(IsRecordFault(FaultKind::kRewrittenRow));
  EXPECT_TRUE(IsRecordFault(FaultKind::kDeletedRow));
  EXPECT_TRUE(IsRecordFault(FaultKind::kTruncatedFile));
  EXPECT_FALSE(IsRecordFault(FaultKind::kThreadCount));
  EXPECT_FALSE(IsRecordFault(FaultKind::kDroppedDependency));
}

TEST(FaultTest, WhatIsNoFaultIsRefusedWithAHint) {
  struct Case {
    const char* text;
    const char* message;
    const char* hint;
  };
  const Case cases[] = {
      {"stale-raed", "there is no fault 'stale-raed'", "did you mean \"stale-read\"?"},
      {"lostupdate@3", "there is no fault 'lostupdate'", "did you mean \"lost-update\"?"},
      {"", "there is no fault ''", "allowed: dropped-dependency, stale-read"},
      {"bit-flip@", "'' is no subnet", "CLASS@SUBNET"},
      {"bit-flip@-1", "'-1' is no subnet", "CLASS@SUBNET"},
      {"bit-flip@1x", "'1x' is no subnet", "CLASS@SUBNET"},
      {"bit-flip@99999999999999999999", "is no subnet", "CLASS@SUBNET"},
      {"truncated-file@3", "a file is cut at no subnet", "leave out"},
  };
  for (const Case& c : cases) {
    const auto fault = ParseFault(c.text);
    ASSERT_FALSE(fault.has_value()) << c.text;
    EXPECT_EQ(fault.error().kind, ErrorKind::kUsage);
    EXPECT_NE(fault.error().message.find(c.message), std::string::npos) << fault.error().message;
    EXPECT_NE(fault.error().hint.find(c.hint), std::string::npos) << fault.error().hint;
  }
}

}  // namespace
}  // namespace verbatim
