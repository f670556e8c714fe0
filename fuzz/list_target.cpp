#include "base/check.h"
#include "fuzz/target.h"
#include "supernet/list_sampler.h"

namespace verbatim::fuzz {

void RunList(std::string_view input) {
  const std::vector<std::uint32_t> candidates = {3, 1, 65536};
  constexpr std::int64_t kEntries = 4;
  const auto choices = ReadChoices(input, "input", candidates, kEntries);
  if (!choices) return;
  VERBATIM_CHECK(choices->size() == kEntries * candidates.size(), "{} choices", choices->size());
  for (std::size_t i = 0; i < choices->size(); ++i) {
    VERBATIM_CHECK((*choices)[i] < candidates[i % candidates.size()], "choice {}", i);
  }
}

}  // namespace verbatim::fuzz
