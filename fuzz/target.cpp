#include "fuzz/target.h"

namespace verbatim::fuzz {
namespace {

constexpr Target kTargets[] = {
    {"json", RunJson, nullptr},         {"spec", RunSpec, nullptr},
    {"costs", RunCosts, CostsSeeds},    {"list", RunList, nullptr},
    {"idx", RunIdx, nullptr},           {"cifar", RunCifar, nullptr},
    {"text", RunText, nullptr},         {"record", RunRecord, RecordSeeds},
    {"packed", RunPacked, PackedSeeds}, {"safetensors", RunSafetensors, SafetensorsSeeds},
    {"head", RunHead, HeadSeeds},       {"proof", RunProof, ProofSeeds},
    {"key", RunKey, nullptr},           {"wire", RunWire, WireSeeds},
    {"part", RunPart, PartSeeds},       {"step", RunStep, StepSeeds},
};

}  // namespace

std::span<const Target> Targets() {
  return kTargets;
}

const Target* FindTarget(std::string_view name) {
  for (const Target& target : kTargets) {
    if (name == target.name) return &target;
  }
  return nullptr;
}

}  // namespace verbatim::fuzz
