// Proves that text of any kind stays text in XML, HTML and Markdown.
#include "verify/markup.h"

#include <gtest/gtest.h>

namespace verbatim {
namespace {

TEST(ValidUtf8, ReplacesWhatIsNone) {
  EXPECT_EQ(ValidUtf8("plain \"…\" \\ \n"), "plain \"…\" \\ \n");
  EXPECT_EQ(ValidUtf8("run\xff.db"), "run\xef\xbf\xbd.db");
  EXPECT_EQ(ValidUtf8("\xc3"), "\xef\xbf\xbd");  // cut within a character
}

TEST(EscapeXml, KeepsEveryCharacterThatXmlCanHold) {
  EXPECT_EQ(EscapeXml("a < b & \"c\" > d"), "a &lt; b &amp; &quot;c&quot; &gt; d");
  EXPECT_EQ(EscapeXml("</script>"), "&lt;/script&gt;");
  EXPECT_EQ(EscapeXml("two\nlines\tand…"), "two\nlines\tand…");
  EXPECT_EQ(EscapeXml(std::string_view("\0\x1b", 2)), "\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(EscapeXml("a\xef\xbf\xbe\xef\xbf\xbfz"), "a\xef\xbf\xbd\xef\xbf\xbdz");
  EXPECT_EQ(EscapeXml("\xef\xbf\xbc"), "\xef\xbf\xbc");  // U+FFFC is a character
}

TEST(EscapeMarkdown, LeavesNothingThatMarksUp) {
  EXPECT_EQ(EscapeMarkdown("a|b `c` <d> e_f *g* [h](i) ~j~ #1 \\ &amp;"),
            "a\\|b \\`c\\` &lt;d&gt; e\\_f \\*g\\* \\[h\\](i) \\~j\\~ \\#1 \\\\ &amp;amp;");
  EXPECT_EQ(EscapeMarkdown("two\r\nlines"), "two  lines");
}

TEST(MarkdownCode, HoldsBackticksAndBars) {
  EXPECT_EQ(MarkdownCode("run.db"), "<code>run.db</code>");
  EXPECT_EQ(MarkdownCode("a|`b`<"), "<code>a&#124;&#96;b&#96;&lt;</code>");
}

}  // namespace
}  // namespace verbatim
