// Losses that another program wrote to a text file, as steps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.h"
#include "base/status.h"
#include "store/step_facts.h"

namespace verbatim {

struct LoggedStep {
  StepFacts facts;
  std::optional<std::uint32_t> loss_bits;  ///< the float32 nearest to what was written
  std::optional<Digest> batch;
};

/// JSON Lines (docs/cli.md, "import"): an object per line, empty lines aside. In ascending step,
/// whatever the lines' order. kBadInput "source:line:column: …" of what is no such object, and of a
/// step that two lines have.
Result<std::vector<LoggedStep>> ReadJsonLines(std::string_view text, const std::string& source);

/// What the last stage of NASPipe (ASPLOS'22, its artifact's main_with_runtime.py) prints for each
/// finished subnet: "Stage: [3] Epoch: [0][1/49372]\tTime: …\tId: 0\tTokens: 761\tOutput:
/// 8336.448…". The id is the step, the output its loss; epoch and tokens are settings. Other lines
/// are passed over. Errors as above, also where no line is of that form.
Result<std::vector<LoggedStep>> ReadNaspipeLog(std::string_view text, const std::string& source);

}  // namespace verbatim
