// Constants of the messages between ranks, for encoder and decoder: docs/wire.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "trainer/ranks/message.h"

namespace verbatim::wire {

inline constexpr std::string_view kMagic = "VBTR";
/// Every rank of a run must speak the same one: the program's version is compared before.
inline constexpr std::uint32_t kVersion = 1;

/// Header without tensors and text.
inline constexpr std::size_t kFixedBytes = 74;
inline constexpr std::size_t kTensorsMax = 4096;
inline constexpr std::size_t kDimensionsMax = 16;
inline constexpr std::size_t kTextBytesMax = std::size_t{1} << 30;

/// What a kind's messages bear; the other fields are as in a Message of no kind.
enum Field : unsigned {
  kSubnet = 1,   ///< task.seq
  kTask = 2,     ///< task.kind, task.microbatch, stage
  kLayer = 4,    ///< layer, version, updates
  kTensors = 8,  ///< any number of them
  kText = 16,
};

struct KindFields {
  MessageKind kind;
  unsigned fields;
};

inline constexpr std::array kKinds = {
    KindFields{MessageKind::kAdmitted, kSubnet},
    KindFields{MessageKind::kTask, kSubnet | kTask | kTensors},
    KindFields{MessageKind::kVersion, kSubnet | kTask | kLayer | kTensors},
    KindFields{MessageKind::kFinished, kSubnet | kText},
    KindFields{MessageKind::kLayer, kLayer | kTensors},
    KindFields{MessageKind::kCapture, kSubnet | kLayer | kTensors},
    KindFields{MessageKind::kStop, 0},
    KindFields{MessageKind::kEnd, kText},
    KindFields{MessageKind::kDone, 0},
    KindFields{MessageKind::kAbort, kText},
    KindFields{MessageKind::kAlive, 0},
    KindFields{MessageKind::kHello, 0},
    KindFields{MessageKind::kClock, kText},
    KindFields{MessageKind::kLeaving, 0},
    KindFields{MessageKind::kHeardAll, 0},
    KindFields{MessageKind::kInvite, kText},
};

}  // namespace verbatim::wire
