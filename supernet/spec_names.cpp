#include "supernet/spec_names.h"

#include <fmt/format.h>

#include "supernet/nearest_name.h"

namespace verbatim {

std::vector<std::string_view> OperatorFields(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::kConv:
      return {"kernel", "dilation", "groups"};
    case OperatorKind::kSeparableConv:
      return {"kernel", "dilation"};
    case OperatorKind::kMbConv:
      return {"kernel", "expansion"};
    case OperatorKind::kAvgPool:
    case OperatorKind::kMaxPool:
      return {"kernel"};
    case OperatorKind::kSkip:
      return {};
    case OperatorKind::kLinear:
      return {"activation", "dropout"};
    case OperatorKind::kFfn:
      return {"hidden", "dropout"};
    case OperatorKind::kClassifier:
      return {"dropout"};
  }
  return {};
}

const char* ToString(Numerics numerics) {
  return NameOf(kNumericsNames, numerics).data();
}
const char* ToString(DataFormat format) {
  return NameOf(kDataFormatNames, format).data();
}
const char* ToString(RecordLevel level) {
  return NameOf(kRecordLevelNames, level).data();
}

Result<RecordLevel> RecordLevelFromString(std::string_view text) {
  for (const auto& [name, level] : kRecordLevelNames) {
    if (name == text) return level;
  }
  return BadInput(fmt::format("\"{}\" is no record level", text),
                  SuggestName(text, NamesOf(kRecordLevelNames)));
}

}  // namespace verbatim
