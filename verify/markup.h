// Text made safe for the markup that it is written into. All of them replace bytes that are no
// UTF-8, since paths and messages may hold such.
#pragma once

#include <string>
#include <string_view>

namespace verbatim {

/// `text` with bytes that are no UTF-8 replaced by U+FFFD.
std::string ValidUtf8(std::string_view text);

/// For element content and double-quoted attributes of XML 1.0 and HTML. Characters that XML cannot
/// hold become U+FFFD.
std::string EscapeXml(std::string_view text);

/// For one line of Markdown outside code, table cells included (CommonMark 0.30, sections 2.4 and
/// 2.5; GitHub's tables). Line ends become spaces.
std::string EscapeMarkdown(std::string_view text);

/// A code span of Markdown that may stand in a table cell.
std::string MarkdownCode(std::string_view text);

}  // namespace verbatim
