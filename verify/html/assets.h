// The files that every HTML report carries, as they were when the program was built.
#pragma once

#include <string_view>

namespace verbatim {

std::string_view ReportTemplate();  ///< report.html: {{name}} marks what is filled in
std::string_view ReportStyle();     ///< report.css
std::string_view ReportScript();    ///< report.js
std::string_view D3Script();        ///< D3, minified

}  // namespace verbatim
