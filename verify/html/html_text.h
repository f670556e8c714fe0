// The pieces that HTML tables and figures are made of. All text is escaped; what a name calls
// `html` is markup already.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace verbatim {

/// Replaces every {{name}} of `text` by its value, in one pass: values are not looked into.
/// Programmer's mistake: a name without a value.
std::string FillTemplate(std::string_view text,
                         const std::vector<std::pair<std::string_view, std::string>>& values);

/// <code>…</code>; a dash for nothing.
std::string CodeHtml(std::string_view text);

/// One row of cells that are HTML; the first heads the row.
std::string RowHtml(const std::vector<std::string>& cells_html, std::string_view css_class = "");

/// A table with a caption for screen readers, in a box that scrolls sideways by itself.
std::string TableHtml(std::string_view caption, const std::vector<std::string>& headings,
                      std::string_view rows_html);

/// A command with a button that copies it.
std::string CommandHtml(std::string_view command);

/// A section with a heading; `id` is what links name.
std::string SectionHtml(std::string_view id, std::string_view heading, std::string_view content);

/// A chart that report.js draws from its part of the data, its caption, and the data as a table.
std::string FigureHtml(std::string_view chart, std::string_view label, std::string_view legend_html,
                       std::string_view caption, std::string_view table_html);

}  // namespace verbatim
