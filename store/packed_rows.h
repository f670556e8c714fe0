// What a subnet did, as the packed columns of its one row (docs/format.md, "Packed columns").
// Inverse pairs: what Unpack… accepts is, byte for byte, what Pack… writes for it. All functions
// are pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/record.h"

namespace verbatim {

/// CHECKs that layers ascend strictly and every number is in the range of store/format.h and
/// store/packed_format.h.
std::string PackAccesses(std::int64_t seq, std::span<const AccessRow> accesses);
/// What is wrong with the bytes, as "access 3: layer is …"; nothing where they are sound. Reuses
/// the vector's memory, whose content means nothing after a problem.
std::optional<std::string> UnpackAccesses(std::int64_t seq, std::string_view bytes,
                                          std::vector<AccessRow>& accesses);
/// How many accesses the bytes hold by their size; nothing where that cannot be told.
std::optional<std::int64_t> CountPackedAccesses(std::string_view bytes);

/// Nothing (a NULL) where there are none. CHECKs that (micro-batch, position) ascends strictly.
std::optional<std::string> PackActivations(std::span<const ActivationRow> activations);
std::optional<std::string> UnpackActivations(std::string_view bytes,
                                             std::vector<ActivationRow>& activations);

/// Nothing (a NULL) where there are none. CHECKs that (stage, micro-batch, phase, begin) ascends
/// strictly and times are in the range of store/format.h.
std::optional<std::string> PackActivity(std::span<const ActivityRow> activity);
std::optional<std::string> UnpackActivity(std::string_view bytes,
                                          std::vector<ActivityRow>& activity);

/// The layers of a checkpoint.
std::string PackManifest(std::span<const CheckpointLayer> layers);
std::optional<std::string> UnpackManifest(std::string_view bytes,
                                          std::vector<CheckpointLayer>& layers);

}  // namespace verbatim
