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
      return {"hidden", "activation", "dropout"};
    case OperatorKind::kClassifier:
      return {"dropout", "tied"};
    case OperatorKind::kEmbedding:
      return {"dropout"};
    case OperatorKind::kConv1d:
    case OperatorKind::kSeparableConv1d:
      return {"kernel", "activation", "dropout"};
    case OperatorKind::kLightweightConv:
      return {"kernel", "heads", "activation", "dropout"};
    case OperatorKind::kAttention:
    case OperatorKind::kCrossAttention:
      return {"heads", "activation", "dropout"};
    case OperatorKind::kGlu:
      return {"activation", "dropout"};
  }
  return {};
}

Activation DefaultActivation(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::kLightweightConv:
    case OperatorKind::kAttention:
    case OperatorKind::kCrossAttention:
    case OperatorKind::kGlu:
      return Activation::kNone;
    default:
      return Activation::kRelu;
  }
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
