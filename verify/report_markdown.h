// A verdict as Markdown, for the summary of a CI job or of a pull request.
#pragma once

#include <string>

#include "verify/verdict.h"

namespace verbatim {

/// The verdict first, then one line of counts, then only what differs: facts of environment, spec
/// and layout, and the first difference with both values and the command to type next. Checks and
/// the spread of the differences follow, collapsed. GitHub's Markdown, with <details> as its only
/// block of HTML.
std::string RenderMarkdown(const Verdict& verdict);

}  // namespace verbatim
