#include "base/check.h"
#include "fuzz/scratch_file.h"
#include "fuzz/small_spec.h"
#include "fuzz/target.h"
#include "supernet/costs.h"

namespace verbatim::fuzz {

void RunCosts(std::string_view input) {
  const auto costs = ReadCosts(WriteScratch("costs.json", input), SmallSpace(), SmallSpec());
  if (!costs) return;
  const std::string text = CostsToJson(*costs, SmallSpace(), SmallSpec());
  const auto again = ReadCosts(WriteScratch("costs.json", text), SmallSpace(), SmallSpec());
  VERBATIM_CHECK(again.has_value() && *again == *costs, "{}", text);
}

std::vector<std::string> CostsSeeds() {
  CostTable measured = AnalyticCosts(SmallSpace(), SmallSpec());
  measured.source = CostSource::kMeasured;
  return {CostsToJson(measured, SmallSpace(), SmallSpec()),
          CostsToJson(EqualCosts(SmallSpace(), SmallSpec()), SmallSpace(), SmallSpec())};
}

}  // namespace verbatim::fuzz
