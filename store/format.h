// Constants that the record's writer and reader share. The page to it: docs/format.md.
#pragma once

#include <cstdint>

namespace verbatim {

/// SQLite's application_id: "VBTM".
inline constexpr std::int32_t kApplicationId = 0x5642544D;
/// SQLite's user_version: the schema of a run of this program, and that of a step run.
inline constexpr std::int32_t kSupernetSchema = 4;
inline constexpr std::int32_t kStepsSchema = 5;

/// Layer ids are below this, sequence ids at most that.
inline constexpr std::int32_t kLayersMax = 1 << 20;
inline constexpr std::int64_t kSeqMax = (std::int64_t{1} << 43) - 1;
/// A trainer's own number of a step is at most this, which every JSON reader takes exactly.
inline constexpr std::int64_t kStepMax = (std::int64_t{1} << 53) - 1;

/// Begins and durations of tasks are no farther from 0 than this, 36 years: sums and differences of
/// a few stay within 64 bits.
inline constexpr std::int64_t kTimeMaxNs = std::int64_t{1} << 60;

/// Table tree holds the complete subtrees of this level and above; those below are as soon computed
/// from their leaves.
inline constexpr int kLowestStoredLevel = 4;
/// Key of table tree: level << kNodeLevelShift | index.
inline constexpr int kNodeLevelShift = 48;

/// How many subnets a run must plan to have pages of the larger size. A page that large is filled
/// by the rows of 48 accesses to 97 %, but each table has one at least.
inline constexpr std::int64_t kLargePageSubnets = 2048;
inline constexpr std::int32_t kLargePageBytes = 65536;
inline constexpr std::int32_t kSmallPageBytes = 4096;

/// How long a connection waits for another one's lock.
inline constexpr std::int32_t kBusyTimeoutMs = 5000;

}  // namespace verbatim
