// The names that a spec gives to its enumerations, for reading and writing alike.
#pragma once

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "supernet/spec.h"

namespace verbatim {

template <typename E, std::size_t N>
using NameTable = std::array<std::pair<std::string_view, E>, N>;

inline constexpr NameTable<Numerics, 3> kNumericsNames{{{"native", Numerics::kNative},
                                                        {"x86-64-v3", Numerics::kX8664V3},
                                                        {"x86-64", Numerics::kX8664}}};
inline constexpr NameTable<DataFormat, 4> kDataFormatNames{{{"idx", DataFormat::kIdx},
                                                            {"cifar10", DataFormat::kCifar10},
                                                            {"cifar100", DataFormat::kCifar100},
                                                            {"text", DataFormat::kText}}};
inline constexpr NameTable<OperatorKind, 16> kOperatorNames{
    {{"conv", OperatorKind::kConv},
     {"separable_conv", OperatorKind::kSeparableConv},
     {"mbconv", OperatorKind::kMbConv},
     {"avg_pool", OperatorKind::kAvgPool},
     {"max_pool", OperatorKind::kMaxPool},
     {"skip", OperatorKind::kSkip},
     {"linear", OperatorKind::kLinear},
     {"ffn", OperatorKind::kFfn},
     {"classifier", OperatorKind::kClassifier},
     {"embedding", OperatorKind::kEmbedding},
     {"conv1d", OperatorKind::kConv1d},
     {"separable_conv1d", OperatorKind::kSeparableConv1d},
     {"lightweight_conv", OperatorKind::kLightweightConv},
     {"attention", OperatorKind::kAttention},
     {"cross_attention", OperatorKind::kCrossAttention},
     {"glu", OperatorKind::kGlu}}};
inline constexpr NameTable<Activation, 4> kActivationNames{
    {{"none", Activation::kNone},
     {"relu", Activation::kRelu},
     {"swish", Activation::kSwish},
     {"leaky_relu", Activation::kLeakyRelu}}};
inline constexpr NameTable<SequencePart, 2> kSequencePartNames{
    {{"encoder", SequencePart::kEncoder}, {"decoder", SequencePart::kDecoder}}};
inline constexpr NameTable<SamplerKind, 4> kSamplerNames{{{"uniform", SamplerKind::kUniform},
                                                          {"list", SamplerKind::kList},
                                                          {"fair", SamplerKind::kFair},
                                                          {"reorder", SamplerKind::kReorder}}};
inline constexpr NameTable<OptimizerKind, 3> kOptimizerNames{{{"sgd", OptimizerKind::kSgd},
                                                              {"adam", OptimizerKind::kAdam},
                                                              {"adamw", OptimizerKind::kAdamW}}};
inline constexpr NameTable<LrKind, 3> kLrNames{
    {{"constant", LrKind::kConstant}, {"step", LrKind::kStep}, {"cosine", LrKind::kCosine}}};
inline constexpr NameTable<RecordLevel, 3> kRecordLevelNames{{{"losses", RecordLevel::kLosses},
                                                              {"weights", RecordLevel::kWeights},
                                                              {"full", RecordLevel::kFull}}};

/// The name of `value`. Names are literals: data() ends with a zero byte.
template <typename E, std::size_t N>
constexpr std::string_view NameOf(const NameTable<E, N>& table, E value) {
  for (const auto& [name, named] : table) {
    if (named == value) return name;
  }
  return "?";
}

/// The names of a table, in its order.
template <typename E, std::size_t N>
std::vector<std::string_view> NamesOf(const NameTable<E, N>& table) {
  std::vector<std::string_view> names;
  for (const auto& entry : table) names.push_back(entry.first);
  return names;
}

/// The fields of an operator beside `op`, in the order of docs/spec.md.
std::vector<std::string_view> OperatorFields(OperatorKind kind);

/// What an operator's `activation` is where the spec does not say.
Activation DefaultActivation(OperatorKind kind);

}  // namespace verbatim
