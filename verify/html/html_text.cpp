#include "verify/html/html_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "verify/markup.h"

namespace verbatim {

std::string FillTemplate(std::string_view text,
                         const std::vector<std::pair<std::string_view, std::string>>& values) {
  std::string filled;
  while (true) {
    const std::size_t begin = text.find("{{");
    if (begin == std::string_view::npos) break;
    const std::size_t end = text.find("}}", begin);
    VERBATIM_CHECK(end != std::string_view::npos, "a placeholder has no end");
    const std::string_view name = text.substr(begin + 2, end - begin - 2);
    const auto value = std::find_if(values.begin(), values.end(),
                                    [name](const auto& pair) { return pair.first == name; });
    VERBATIM_CHECK(value != values.end(), "no value for {}", name);
    filled += text.substr(0, begin);
    filled += value->second;
    text.remove_prefix(end + 2);
  }
  return filled.append(text);
}

std::string CodeHtml(std::string_view text) {
  return text.empty() ? "<span class=\"none\">–</span>" : "<code>" + EscapeXml(text) + "</code>";
}

std::string RowHtml(const std::vector<std::string>& cells_html, std::string_view css_class) {
  std::string html = css_class.empty() ? "<tr>" : fmt::format("<tr class=\"{}\">", css_class);
  for (std::size_t i = 0; i < cells_html.size(); ++i) {
    html +=
        i == 0 ? "<th scope=\"row\">" + cells_html[i] + "</th>" : "<td>" + cells_html[i] + "</td>";
  }
  return html + "</tr>\n";
}

std::string TableHtml(std::string_view caption, const std::vector<std::string>& headings,
                      std::string_view rows_html) {
  std::string head;
  for (const std::string& heading : headings) {
    head += fmt::format("<th scope=\"col\">{}</th>", EscapeXml(heading));
  }
  return fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table>"
      "<caption>{0}</caption>\n<thead><tr>{1}</tr></thead>\n<tbody>\n{2}</tbody></table></div>\n",
      EscapeXml(caption), head, rows_html);
}

std::string CommandHtml(std::string_view command) {
  return fmt::format(
      "<div class=\"command\"><code>{}</code>"
      "<button type=\"button\" class=\"copy\">Copy</button></div>\n",
      EscapeXml(command));
}

std::string SectionHtml(std::string_view id, std::string_view heading, std::string_view content) {
  return fmt::format(
      "<section id=\"{0}\" aria-labelledby=\"{0}-heading\">\n<h2 id=\"{0}-heading\">{1}</h2>\n"
      "{2}</section>\n",
      id, EscapeXml(heading), content);
}

std::string FigureHtml(std::string_view chart, std::string_view label, std::string_view legend_html,
                       std::string_view caption, std::string_view table_html) {
  return fmt::format(
      "<figure>\n{2}<div class=\"chart\" data-chart=\"{0}\" data-label=\"{1}\"></div>\n"
      "<figcaption>{3}</figcaption>\n<details><summary>The data as a table</summary>\n{4}"
      "</details>\n</figure>\n",
      chart, EscapeXml(label), legend_html, EscapeXml(caption), table_html);
}

}  // namespace verbatim
