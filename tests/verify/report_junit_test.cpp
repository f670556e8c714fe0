// Pins the JUnit report; tests/reports reads it with XML and JUnit parsers.
#include "verify/report_junit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/verify/sample_verdicts.h"

namespace verbatim {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(RenderJunit, OfAnEqualRun) {
  Verdict verdict = EqualVerdict();
  verdict.checks = {PassedCheck("file"), verdict.checks[2]};
  EXPECT_EQ(RenderJunit(verdict, "0.1.0"),
            R"(<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="verbatim" tests="2" failures="0" errors="0" skipped="0">
  <testsuite name="run.db" tests="2" failures="0" errors="0" skipped="0">
    <properties>
      <property name="tool_version" value="0.1.0"/>
      <property name="verdict" value="equal"/>
      <property name="exit_code" value="0"/>
      <property name="summary" value="300 subnets, 4,200 accesses: equal to the sequential reference"/>
      <property name="run.status" value="complete"/>
      <property name="run.policy" value="causal"/>
      <property name="run.stages" value="2"/>
      <property name="run.in_flight" value="4"/>
      <property name="run.device" value="cpu"/>
      <property name="run.record_level" value="weights"/>
      <property name="run.tool_version" value="0.1.0"/>
      <property name="counts.subnets_planned" value="300"/>
      <property name="counts.subnets" value="300"/>
      <property name="counts.accesses" value="4200"/>
      <property name="counts.violations" value="0"/>
      <property name="counts.subnets_reexecuted" value="300"/>
      <property name="coverage.description" value="all of 300 subnets"/>
      <property name="coverage.subnets_executed" value="300"/>
      <property name="coverage.stages" value="1"/>
    </properties>
    <testcase classname="verbatim.digits" name="file"/>
    <testcase classname="verbatim.digits" name="re-execution">
      <system-out>300 subnets</system-out>
    </testcase>
  </testsuite>
</testsuites>
)");
}

TEST(RenderJunit, TellsTheFirstDifferenceWhereACheckFailed) {
  const std::string xml = RenderJunit(DifferentVerdict(), "0");
  EXPECT_THAT(xml, HasSubstr("tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\""));
  EXPECT_THAT(xml, HasSubstr("<failure message=\"subnet 12 read block3.1 at version 7\" "
                             "type=\"schedule\">1 violation in 1 subnet\n"));
  EXPECT_THAT(xml, HasSubstr("First difference: subnet 12, layer block3.1, forward, schedule"));
  EXPECT_THAT(xml, HasSubstr("next      verbatim show run.db --layer block3.1"));
  EXPECT_THAT(xml, HasSubstr("<skipped message=\"ask for it with --reexecute all\"/>"));
  EXPECT_THAT(xml, HasSubstr("name=\"environment.cpu.model.here\" value=\"C&lt;D&gt;\""));
}

TEST(RenderJunit, TellsTheTensorBehindADifference) {
  EXPECT_THAT(RenderJunit(ExplainedVerdict(), "0"), HasSubstr("gradient of weight"));
}

TEST(RenderJunit, CallsDamageAnError) {
  const std::string xml = RenderJunit(DamagedVerdict(), "0");
  EXPECT_THAT(xml, HasSubstr("failures=\"0\" errors=\"1\" skipped=\"2\""));
  EXPECT_THAT(xml, HasSubstr("type=\"damage\""));
  EXPECT_THAT(xml, HasSubstr("and 3 more"));
  EXPECT_THAT(xml, HasSubstr("classname=\"verbatim.record\""));
}

TEST(RenderJunit, NeverPassesWhatIsNotEqual) {
  const std::string xml = RenderJunit(ComparedVerdict(), "0");
  EXPECT_THAT(xml, HasSubstr("failures=\"1\""));
  EXPECT_THAT(xml, HasSubstr("name=\"difference\""));
  EXPECT_THAT(xml, HasSubstr("name=\"spec.training.lr.base.B\" value=\"0.2\""));
  EXPECT_THAT(RenderJunit(EqualVerdict(), "0"), Not(HasSubstr("name=\"difference\"")));
}

}  // namespace
}  // namespace verbatim
