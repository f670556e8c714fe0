// What is fuzzed: everything that reads bytes from outside. A target takes any bytes at all and
// must return: a crash, a hang, a report of a sanitizer or a failed VERBATIM_CHECK is a finding.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace verbatim::fuzz {

struct Target {
  const char* name;
  void (*run)(std::string_view input);
  /// Well-formed inputs that are made rather than kept in corpus/, since the code that writes them
  /// changes with their format; null where corpus/ has them all.
  std::vector<std::string> (*seeds)();
};

/// All targets, in the order of docs/fuzzing.md.
std::span<const Target> Targets();

/// Null where there is none of that name.
const Target* FindTarget(std::string_view name);

void RunJson(std::string_view input);
void RunSpec(std::string_view input);
void RunCosts(std::string_view input);
void RunList(std::string_view input);
void RunIdx(std::string_view input);
void RunCifar(std::string_view input);
void RunText(std::string_view input);
void RunRecord(std::string_view input);
void RunPacked(std::string_view input);
void RunSafetensors(std::string_view input);
void RunHead(std::string_view input);
void RunProof(std::string_view input);
void RunKey(std::string_view input);
void RunWire(std::string_view input);
void RunPart(std::string_view input);
void RunStep(std::string_view input);

std::vector<std::string> CostsSeeds();
std::vector<std::string> RecordSeeds();
std::vector<std::string> PackedSeeds();
std::vector<std::string> SafetensorsSeeds();
std::vector<std::string> HeadSeeds();
std::vector<std::string> ProofSeeds();
std::vector<std::string> WireSeeds();
std::vector<std::string> PartSeeds();
std::vector<std::string> StepSeeds();

}  // namespace verbatim::fuzz
