#include "verify/stream_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/check.h"
#include "supernet/list_sampler.h"
#include "supernet/text_file.h"

namespace verbatim {

std::optional<Difference> CompareChoices(const LayerTable& table,
                                         std::span<const std::uint16_t> recorded,
                                         std::span<const std::uint16_t> expected) {
  const auto [at, other] =
      std::mismatch(recorded.begin(), recorded.end(), expected.begin(), expected.end());
  if (at == recorded.end() && other == expected.end()) return std::nullopt;
  Difference difference;
  difference.kind = DifferenceClass::kSpec;
  difference.what = "choices";
  if (at == recorded.end() || other == expected.end()) {
    difference.recorded = fmt::format("{} choices", recorded.size());
    difference.expected = fmt::format("{} choices", expected.size());
    return difference;
  }
  const auto position = static_cast<int>(at - recorded.begin()) + 1;
  difference.layer = table.FirstLayer(position) + *at;
  difference.layer_name = table.Name(*difference.layer);
  difference.recorded = difference.layer_name;
  difference.expected = table.Name(table.FirstLayer(position) + *other);
  return difference;
}

StreamCheck::StreamCheck(const RunInfo& run, const Spec& spec, const LayerTable& table)
    : spec_(spec), table_(table) {
  if (spec.sampler.kind == SamplerKind::kList) {
    source_ = fmt::format("{} lists", spec.sampler.file);
    ReadList(run);
  } else {
    source_ = fmt::format("sampler uniform draws with seed {}", spec.seed);
  }
}

void StreamCheck::ReadList(const RunInfo& run) {
  const std::filesystem::path path = std::filesystem::path(run.spec_folder) / spec_.sampler.file;
  const auto text = ReadTextFile(path, "the list of subnets", "");
  if (!text) {
    obstacle_ = fmt::format("the list file {} cannot be read", path.string());
    return;
  }
  std::vector<std::uint32_t> candidates;
  for (int block = 0; block < table_.blocks(); ++block) {
    candidates.push_back(static_cast<std::uint32_t>(table_.candidates(block + 1)));
  }
  auto listed = ReadChoices(*text, path.string(), candidates, run.subnets_planned);
  if (listed) {
    listed_ = *std::move(listed);
  } else {
    obstacle_ = listed.error().message;
  }
}

std::span<const std::uint16_t> StreamCheck::Draw(RandomPurpose purpose, std::int64_t place) {
  table_.DrawUniform({spec_.seed, purpose, 0, 0, static_cast<std::uint32_t>(place)}, drawn_);
  return drawn_;
}

std::optional<Difference> StreamCheck::CompareSubnet(std::int64_t seq,
                                                     std::span<const std::uint16_t> choices) {
  VERBATIM_CHECK(obstacle_.empty(), "{}", obstacle_);
  const auto blocks = static_cast<std::size_t>(table_.blocks());
  const auto expected =
      spec_.sampler.kind == SamplerKind::kList
          ? std::span(listed_).subspan(static_cast<std::size_t>(seq) * blocks, blocks)
          : Draw(RandomPurpose::kSampler, seq);
  auto difference = CompareChoices(table_, choices, expected);
  if (difference) {
    difference->seq = seq;
    difference->cause =
        fmt::format("the recorded choices of subnet {} are not what {}", seq, source_);
  }
  return difference;
}

std::optional<Difference> StreamCheck::CompareEvaluation(std::int64_t index,
                                                         std::span<const std::uint16_t> choices) {
  auto difference = CompareChoices(table_, choices, Draw(RandomPurpose::kEvaluationSubnet, index));
  if (difference) {
    difference->after_last = true;
    difference->what = fmt::format("choices of evaluation {}", index);
    difference->cause = fmt::format(
        "the recorded choices of evaluation {} are not what seed {} "
        "draws",
        index, spec_.seed);
  }
  return difference;
}

}  // namespace verbatim
