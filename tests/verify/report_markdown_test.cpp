// Pins the Markdown report: the verdict first, only what differs, the rest collapsed.
#include "verify/report_markdown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/verify/sample_verdicts.h"

namespace verbatim {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(RenderMarkdown, OfAnEqualRun) {
  EXPECT_EQ(RenderMarkdown(EqualVerdict()),
            R"(### ✅ equal: <code>run.db</code> (digits)

300 subnets, 4,200 accesses: equal to the sequential reference

<details><summary>Checks: 3 passed, 0 failed, 0 not run</summary>

| check | outcome | what was found |
|---|---|---|
| file | passed | SQLite's checks |
| causality | passed | 4,200 accesses |
| re-execution | passed | 300 subnets |

</details>
)");
}

TEST(RenderMarkdown, OfADifferenceInAnotherEnvironment) {
  EXPECT_THAT(RenderMarkdown(DifferentVerdict()),
              StartsWith(R"(### ❌ different: <code>run.db</code> (digits)

300 subnets, 4,200 accesses: not equal to the sequential reference, first at subnet 12, layer block3.1, forward (schedule)

The environment is not the recorded one:

| fact | recorded | here | may change bits |
|---|---|---|---|
| cpu.model | <code>A&#124;B</code> | <code>C&lt;D&gt;</code> | yes |
| info.host | <code>x</code> | (none) | no |

**First difference:** subnet 12, layer block3.1, forward — schedule

| version read | value |
|---|---|
| recorded | <code>version 7</code> |
| expected | <code>version 10</code> |

subnet 12 read block3.1 at version 7 on stage 1; its causal predecessor is subnet 10

```sh
verbatim show run.db --layer block3.1
```

<details><summary>Checks: 1 passed, 1 failed, 1 not run</summary>
)"));
}

TEST(RenderMarkdown, OfTwoRecords) {
  const std::string text = RenderMarkdown(ComparedVerdict());
  EXPECT_THAT(text, HasSubstr("<code>run.db</code> against <code>other.db</code>"));
  EXPECT_THAT(text, HasSubstr("| training.lr.base | <code>0.1</code> | <code>0.2</code> |"));
  Verdict elsewhere = AgainstVerdict();
  elsewhere.environment_differences = {{"cpu.model", "one", "two", true}};
  EXPECT_THAT(RenderMarkdown(elsewhere),
              HasSubstr("The environments differ:\n\n| fact | record | reference |"));
  EXPECT_THAT(text, HasSubstr("| spec | A | B |"));
  EXPECT_THAT(RenderMarkdown(AgainstVerdict()), HasSubstr("| spec | record | reference |"));
  EXPECT_THAT(text, HasSubstr("| stages | <code>2</code> | <code>3</code> |"));
  EXPECT_THAT(text, HasSubstr("<details><summary>1 origin, 2 tainted subnets</summary>"));
  EXPECT_THAT(text, HasSubstr("Tainted subnets: 3, 5\n"));
}

TEST(RenderMarkdown, SaysWhatIsDamagedOrIncomplete) {
  EXPECT_THAT(RenderMarkdown(DamagedVerdict()),
              testing::AllOf(StartsWith("### ⚠️ damaged: "), HasSubstr("**failed**"),
                             HasSubstr("&lt;bad&gt; &amp; \"worse\""), HasSubstr("<br>and 3 more"),
                             Not(HasSubstr("The run "))));
  EXPECT_THAT(RenderMarkdown(InterruptedVerdict()),
              testing::AllOf(HasSubstr("<code>a&#124;b &#96;c&#96;\xef\xbf\xbd.db</code>"),
                             HasSubstr("The run was interrupted after 120 of 300 subnets; ")));
}

TEST(RenderMarkdown, SaysWhatADrawIsWorthAndWhichTensorDiffers) {
  EXPECT_THAT(RenderMarkdown(DrawnVerdict()), HasSubstr("Had 5.4 % of the subnets been faulty"));
  EXPECT_THAT(RenderMarkdown(ExplainedVerdict()),
              testing::AllOf(HasSubstr("| explanation | |"), HasSubstr("gradient of weight")));
}

TEST(RenderMarkdown, FencesACommandThatHasBackticks) {
  Verdict verdict = DifferentVerdict();
  verdict.first_difference->next_command = "verbatim show 'a```.db'";
  EXPECT_THAT(RenderMarkdown(verdict), HasSubstr("````sh\nverbatim show 'a```.db'\n````\n"));
}

}  // namespace
}  // namespace verbatim
