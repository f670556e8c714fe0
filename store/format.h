// Constants that the record's writer and reader share. The page to it: docs/format.md.
#pragma once

#include <cstdint>

namespace verbatim {

/// SQLite's application_id: "VBTM".
inline constexpr std::int32_t kApplicationId = 0x5642544D;
/// SQLite's user_version: the schema that this program writes.
inline constexpr std::int32_t kSchemaVersion = 3;
/// The oldest schema that it reads.
inline constexpr std::int32_t kOldestReadableSchema = 3;

/// Key of table `accesses`: seq * kAccessKeyLayers + layer.
inline constexpr int kAccessLayerBits = 20;
inline constexpr std::int64_t kAccessKeyLayers = std::int64_t{1} << kAccessLayerBits;
/// Layer ids are below kAccessKeyLayers, sequence ids at most this.
inline constexpr std::int64_t kSeqMax = (std::int64_t{1} << 43) - 1;

/// Begins and durations of tasks are no farther from 0 than this, 36 years: sums and differences of
/// a few stay within 64 bits.
inline constexpr std::int64_t kTimeMaxNs = std::int64_t{1} << 60;

/// How long a connection waits for another one's lock.
inline constexpr std::int32_t kBusyTimeoutMs = 5000;

}  // namespace verbatim
