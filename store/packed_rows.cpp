#include "store/packed_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <tuple>

#include "base/check.h"
#include "base/little_endian.h"
#include "store/format.h"
#include "store/packed_format.h"

namespace verbatim {
namespace {

using Problem = std::optional<std::string>;
using DigestColumn = std::optional<Digest> AccessRow::*;

constexpr std::array<DigestColumn, 3> kDigestColumns{
    &AccessRow::weights, &AccessRow::optimizer_state, &AccessRow::gradients};
constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kInt32Min = std::numeric_limits<std::int32_t>::min();

constexpr std::uint8_t FlagOf(std::size_t digest_column) {
  return static_cast<std::uint8_t>(kHasWeights << digest_column);
}

bool FitsInt32(std::int64_t value) {
  return kInt32Min <= value && value <= kInt32Max;
}

/// The flags that these accesses need, and no other.
std::uint8_t FlagsFor(std::int64_t seq, std::span<const AccessRow> accesses) {
  std::uint8_t flags = 0;
  for (const AccessRow& access : accesses) {
    if (access.base_seq != access.read_seq) flags |= kHasBase;
    if (!FitsInt32(seq - access.read_seq) || !FitsInt32(seq - access.base_seq)) {
      flags |= kWideDistances;
    }
    for (std::size_t i = 0; i < kDigestColumns.size(); ++i) {
      if (access.*kDigestColumns[i]) flags |= FlagOf(i);
    }
  }
  return flags;
}

std::uint8_t PresentDigests(const AccessRow& access) {
  std::uint8_t present = 0;
  for (std::size_t i = 0; i < kDigestColumns.size(); ++i) {
    if (access.*kDigestColumns[i]) present |= static_cast<std::uint8_t>(1 << i);
  }
  return present;
}

char* PutDistance(char* out, std::int64_t distance, std::uint8_t flags) {
  if ((flags & kWideDistances) != 0) {
    PutLittle<kWideDistanceBytes>(out, static_cast<std::uint64_t>(distance));
  } else {
    PutLittle<kNarrowDistanceBytes>(out, static_cast<std::uint64_t>(distance));
  }
  return out + DistanceBytes(flags);
}

std::int64_t GetDistance(const char* in, std::uint8_t flags) {
  if ((flags & kWideDistances) != 0) return static_cast<std::int64_t>(GetLittle<8>(in));
  return static_cast<std::int32_t>(GetLittle<4>(in));
}

char* PutAccess(char* out, std::int64_t seq, const AccessRow& access, std::uint8_t flags) {
  PutLittle<3>(out, static_cast<std::uint64_t>(access.layer));
  PutLittle<2>(out + 3, static_cast<std::uint64_t>(access.stage));
  PutLittle<1>(out + 5, PresentDigests(access));
  out = PutDistance(out + kAccessPrefixBytes, seq - access.read_seq, flags);
  if ((flags & kHasBase) != 0) out = PutDistance(out, seq - access.base_seq, flags);
  for (std::size_t i = 0; i < kDigestColumns.size(); ++i) {
    if ((flags & FlagOf(i)) == 0) continue;
    const auto& digest = access.*kDigestColumns[i];
    if (digest) std::memcpy(out, digest->bytes.data(), kPackedDigestBytes);
    out += kPackedDigestBytes;
  }
  return out;
}

void CheckAccesses(std::int64_t seq, std::span<const AccessRow> accesses) {
  std::int32_t last_layer = -1;
  for (const AccessRow& access : accesses) {
    VERBATIM_CHECK(access.layer > last_layer && access.layer < kLayersMax,
                   "subnet {}: layer {} after layer {}", seq, access.layer, last_layer);
    VERBATIM_CHECK(0 <= access.stage && access.stage <= kStageMax, "subnet {}: stage {}", seq,
                   access.stage);
    for (const std::int64_t version : {access.read_seq, access.base_seq}) {
      VERBATIM_CHECK(-1 <= version && version <= kSeqMax, "subnet {}: version {}", seq, version);
    }
    last_layer = access.layer;
  }
}

bool IsZero(const char* bytes, std::size_t size) {
  return std::all_of(bytes, bytes + size, [](char byte) { return byte == 0; });
}

/// Reads the digests of one item. False where they are not what its `present` says.
bool GetDigests(const char* in, std::uint8_t flags, std::uint8_t present, AccessRow& access) {
  for (std::size_t i = 0; i < kDigestColumns.size(); ++i) {
    auto& digest = access.*kDigestColumns[i];
    const bool is_present = (present >> i & 1) != 0;
    const bool has_column = (flags & FlagOf(i)) != 0;
    if (is_present && !has_column) return false;
    if (!is_present) {
      if (has_column && !IsZero(in, kPackedDigestBytes)) return false;
      digest.reset();
    } else {
      std::memcpy(digest.emplace().bytes.data(), in, kPackedDigestBytes);
    }
    if (has_column) in += kPackedDigestBytes;
  }
  return true;
}

bool IsVersion(std::int64_t seq) {
  return -1 <= seq && seq <= kSeqMax;
}

Problem GetAccess(const char* in, std::int64_t seq, std::uint8_t flags, std::int32_t last_layer,
                  AccessRow& access) {
  access.layer = static_cast<std::int32_t>(GetLittle<3>(in));
  access.stage = static_cast<std::int32_t>(GetLittle<2>(in + 3));
  const auto present = static_cast<std::uint8_t>(in[5]);
  if (access.layer <= last_layer || access.layer >= kLayersMax) {
    return fmt::format("layer is {}, after {}", access.layer, last_layer);
  }
  if (present >> kDigestColumns.size() != 0) return fmt::format("present is {}", present);
  in += kAccessPrefixBytes;
  // Of any bits, without overflow.
  const auto version = [&](const char* at) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(seq) -
                                     static_cast<std::uint64_t>(GetDistance(at, flags)));
  };
  access.read_seq = access.base_seq = version(in);
  in += DistanceBytes(flags);
  if (!IsVersion(access.read_seq)) {
    return fmt::format("read_seq is {}, not in -1 to {}", access.read_seq, kSeqMax);
  }
  if ((flags & kHasBase) != 0) {
    access.base_seq = version(in);
    in += DistanceBytes(flags);
  }
  if (!IsVersion(access.base_seq)) {
    return fmt::format("base_seq is {}, not in -1 to {}", access.base_seq, kSeqMax);
  }
  if (!GetDigests(in, flags, present, access)) return "digests are not those said to be present";
  return std::nullopt;
}

auto Key(const ActivationRow& row) {
  return std::tuple(row.microbatch, row.position);
}
auto Key(const ActivityRow& row) {
  return std::tuple(row.stage, row.microbatch, row.phase, row.begin_ns);
}

template <typename Row>
bool AscendsStrictly(std::span<const Row> rows) {
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (!(Key(rows[i - 1]) < Key(rows[i]))) return false;
  }
  return true;
}

bool IsTime(std::int64_t ns) {
  return -kTimeMaxNs <= ns && ns <= kTimeMaxNs;
}

bool IsNarrow(const ActivityRow& task, std::int64_t base) {
  constexpr std::int64_t kUint32Max = std::numeric_limits<std::uint32_t>::max();
  const std::int64_t duration = task.end_ns - task.begin_ns;
  return task.stage <= 0xff && task.microbatch <= 0xff && task.begin_ns - base <= kUint32Max &&
         0 <= duration && duration <= kUint32Max;
}

std::int64_t EarliestBegin(std::span<const ActivityRow> activity) {
  std::int64_t base = activity.front().begin_ns;
  for (const ActivityRow& task : activity) base = std::min(base, task.begin_ns);
  return base;
}

std::uint8_t TaskFormatFor(std::span<const ActivityRow> activity, std::int64_t base) {
  const bool narrow = std::all_of(activity.begin(), activity.end(),
                                  [&](const ActivityRow& task) { return IsNarrow(task, base); });
  return narrow ? kNarrowTasks : kWideTasks;
}

void CheckTask(const ActivityRow& task) {
  VERBATIM_CHECK(task.stage >= 0 && task.microbatch >= 0 && IsTime(task.begin_ns) &&
                     IsTime(task.end_ns - task.begin_ns),
                 "a task on stage {}, micro-batch {}, from {} to {} ns", task.stage,
                 task.microbatch, task.begin_ns, task.end_ns);
}

void PutTask(char* out, const ActivityRow& task, std::int64_t base, bool narrow) {
  const auto stage = static_cast<std::uint64_t>(task.stage);
  const auto microbatch = static_cast<std::uint64_t>(task.microbatch);
  const auto phase = static_cast<std::uint64_t>(task.phase);
  const auto begin = static_cast<std::uint64_t>(task.begin_ns - base);
  const auto duration = static_cast<std::uint64_t>(task.end_ns - task.begin_ns);
  if (narrow) {
    PutLittle<1>(out, stage);
    PutLittle<1>(out + 1, microbatch);
    PutLittle<1>(out + 2, phase);
    PutLittle<4>(out + 3, begin);
    PutLittle<4>(out + 7, duration);
  } else {
    PutLittle<4>(out, stage);
    PutLittle<4>(out + 4, microbatch);
    PutLittle<1>(out + 8, phase);
    PutLittle<8>(out + 9, begin);
    PutLittle<8>(out + 17, duration);
  }
}

/// One item as numbers, before anything is known of their ranges.
struct RawTask {
  std::uint64_t stage, microbatch, phase, begin;
  std::int64_t duration;
};

RawTask GetTask(const char* in, bool narrow) {
  if (narrow) {
    return {GetLittle<1>(in), GetLittle<1>(in + 1), GetLittle<1>(in + 2), GetLittle<4>(in + 3),
            static_cast<std::int64_t>(GetLittle<4>(in + 7))};
  }
  return {GetLittle<4>(in), GetLittle<4>(in + 4), GetLittle<1>(in + 8), GetLittle<8>(in + 9),
          static_cast<std::int64_t>(GetLittle<8>(in + 17))};
}

Problem CheckedTask(const RawTask& raw, std::int64_t base, ActivityRow& task) {
  if (raw.stage > kInt32Max) return fmt::format("stage is {}", raw.stage);
  if (raw.microbatch > kInt32Max) return fmt::format("microbatch is {}", raw.microbatch);
  if (raw.phase > 2) return fmt::format("phase is {}, not in 0 to 2", raw.phase);
  if (raw.begin > static_cast<std::uint64_t>(kTimeMaxNs - base)) {
    return fmt::format("begin_ns is more than {} after {}", raw.begin, base);
  }
  if (!IsTime(raw.duration)) return fmt::format("duration_ns is {}", raw.duration);
  task.stage = static_cast<std::int32_t>(raw.stage);
  task.microbatch = static_cast<std::int32_t>(raw.microbatch);
  task.phase = static_cast<Phase>(raw.phase);
  task.begin_ns = base + static_cast<std::int64_t>(raw.begin);
  task.end_ns = task.begin_ns + raw.duration;
  return std::nullopt;
}

std::string AboutItem(const char* item, std::size_t index, const std::string& problem) {
  return fmt::format("{} {}: {}", item, index, problem);
}

constexpr const char* kNotCanonical = "is not the shortest form of what it says";

}  // namespace

std::string PackAccesses(std::int64_t seq, std::span<const AccessRow> accesses) {
  CheckAccesses(seq, accesses);
  const std::uint8_t flags = FlagsFor(seq, accesses);
  std::string bytes(1 + accesses.size() * AccessItemBytes(flags), '\0');
  bytes[0] = static_cast<char>(flags);
  char* out = bytes.data() + 1;
  for (const AccessRow& access : accesses) out = PutAccess(out, seq, access, flags);
  return bytes;
}

Problem UnpackAccesses(std::int64_t seq, std::string_view bytes, std::vector<AccessRow>& accesses) {
  const auto count = CountPackedAccesses(bytes);
  if (!count) return fmt::format("holds no list of accesses in its {} bytes", bytes.size());
  const auto flags = static_cast<std::uint8_t>(bytes[0]);
  accesses.resize(static_cast<std::size_t>(*count));
  const char* in = bytes.data() + 1;
  std::int32_t last_layer = -1;
  for (std::size_t i = 0; i < accesses.size(); ++i, in += AccessItemBytes(flags)) {
    if (auto problem = GetAccess(in, seq, flags, last_layer, accesses[i])) {
      return AboutItem("access", i, *problem);
    }
    last_layer = accesses[i].layer;
  }
  if (flags != FlagsFor(seq, accesses)) return kNotCanonical;
  return std::nullopt;
}

std::optional<std::int64_t> CountPackedAccesses(std::string_view bytes) {
  if (bytes.empty() || static_cast<std::uint8_t>(bytes[0]) > kAccessFlagsMax) return std::nullopt;
  const std::size_t width = AccessItemBytes(static_cast<std::uint8_t>(bytes[0]));
  if ((bytes.size() - 1) % width != 0) return std::nullopt;
  return static_cast<std::int64_t>((bytes.size() - 1) / width);
}

std::optional<std::string> PackActivations(std::span<const ActivationRow> activations) {
  if (activations.empty()) return std::nullopt;
  VERBATIM_CHECK(AscendsStrictly(activations), "activations that do not ascend");
  std::string bytes(activations.size() * kActivationItemBytes, '\0');
  char* out = bytes.data();
  for (const ActivationRow& row : activations) {
    VERBATIM_CHECK(row.microbatch >= 0 && row.position >= 0, "activation of micro-batch {} at {}",
                   row.microbatch, row.position);
    PutLittle<4>(out, static_cast<std::uint64_t>(row.microbatch));
    PutLittle<4>(out + 4, static_cast<std::uint64_t>(row.position));
    std::memcpy(out + 8, row.digest.bytes.data(), kPackedDigestBytes);
    out += kActivationItemBytes;
  }
  return bytes;
}

Problem UnpackActivations(std::string_view bytes, std::vector<ActivationRow>& activations) {
  if (bytes.empty() || bytes.size() % kActivationItemBytes != 0) {
    return fmt::format("holds no list of activations in its {} bytes", bytes.size());
  }
  activations.resize(bytes.size() / kActivationItemBytes);
  const char* in = bytes.data();
  for (ActivationRow& row : activations) {
    const std::uint64_t microbatch = GetLittle<4>(in), position = GetLittle<4>(in + 4);
    const auto index = static_cast<std::size_t>(&row - activations.data());
    if (microbatch > kInt32Max) {
      return AboutItem("activation", index, fmt::format("microbatch is {}", microbatch));
    }
    if (position > kInt32Max) {
      return AboutItem("activation", index, fmt::format("position is {}", position));
    }
    row.microbatch = static_cast<std::int32_t>(microbatch);
    row.position = static_cast<std::int32_t>(position);
    std::memcpy(row.digest.bytes.data(), in + 8, kPackedDigestBytes);
    in += kActivationItemBytes;
  }
  if (!AscendsStrictly(std::span<const ActivationRow>(activations))) return "does not ascend";
  return std::nullopt;
}

std::optional<std::string> PackActivity(std::span<const ActivityRow> activity) {
  if (activity.empty()) return std::nullopt;
  VERBATIM_CHECK(AscendsStrictly(activity), "tasks that do not ascend");
  const std::int64_t base = EarliestBegin(activity);
  const std::uint8_t format = TaskFormatFor(activity, base);
  const bool narrow = format == kNarrowTasks;
  const std::size_t width = narrow ? kNarrowTaskBytes : kWideTaskBytes;
  std::string bytes(kActivityHeadBytes + activity.size() * width, '\0');
  PutLittle<8>(bytes.data(), static_cast<std::uint64_t>(base));
  PutLittle<1>(bytes.data() + 8, format);
  char* out = bytes.data() + kActivityHeadBytes;
  for (const ActivityRow& task : activity) {
    CheckTask(task);
    PutTask(out, task, base, narrow);
    out += width;
  }
  return bytes;
}

Problem UnpackActivity(std::string_view bytes, std::vector<ActivityRow>& activity) {
  const auto no_list = [&] {
    return fmt::format("holds no list of tasks in its {} bytes", bytes.size());
  };
  if (bytes.size() <= kActivityHeadBytes) return no_list();
  const auto base = static_cast<std::int64_t>(GetLittle<8>(bytes.data()));
  const auto format = static_cast<std::uint8_t>(bytes[8]);
  if (format > kWideTasks || !IsTime(base)) return no_list();
  const bool narrow = format == kNarrowTasks;
  const std::size_t width = narrow ? kNarrowTaskBytes : kWideTaskBytes;
  if ((bytes.size() - kActivityHeadBytes) % width != 0) return no_list();
  activity.resize((bytes.size() - kActivityHeadBytes) / width);
  const char* in = bytes.data() + kActivityHeadBytes;
  for (std::size_t i = 0; i < activity.size(); ++i, in += width) {
    if (auto problem = CheckedTask(GetTask(in, narrow), base, activity[i])) {
      return AboutItem("task", i, *problem);
    }
  }
  if (!AscendsStrictly(std::span<const ActivityRow>(activity))) return "does not ascend";
  if (base != EarliestBegin(activity) || format != TaskFormatFor(activity, base)) {
    return kNotCanonical;
  }
  return std::nullopt;
}

std::string PackManifest(std::span<const CheckpointLayer> layers) {
  std::string bytes(layers.size() * kManifestItemBytes, '\0');
  char* out = bytes.data();
  for (const CheckpointLayer& layer : layers) {
    VERBATIM_CHECK(IsVersion(layer.version), "version {}", layer.version);
    PutLittle<8>(out, static_cast<std::uint64_t>(layer.version));
    std::memcpy(out + 8, layer.file.bytes.data(), layer.file.bytes.size());
    out += kManifestItemBytes;
  }
  return bytes;
}

Problem UnpackManifest(std::string_view bytes, std::vector<CheckpointLayer>& layers) {
  if (bytes.size() % kManifestItemBytes != 0) {
    return fmt::format("holds no list of layers in its {} bytes", bytes.size());
  }
  layers.resize(bytes.size() / kManifestItemBytes);
  const char* in = bytes.data();
  for (CheckpointLayer& layer : layers) {
    layer.version = static_cast<std::int64_t>(GetLittle<8>(in));
    if (!IsVersion(layer.version)) {
      return AboutItem("layer", static_cast<std::size_t>(&layer - layers.data()),
                       fmt::format("version is {}", layer.version));
    }
    std::memcpy(layer.file.bytes.data(), in + 8, layer.file.bytes.size());
    in += kManifestItemBytes;
  }
  return std::nullopt;
}

}  // namespace verbatim
