#include "base/processor.h"

#if defined(__x86_64__)
#include <cpuid.h>
#else
#include <fstream>
#include <sstream>
#endif

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

namespace verbatim {
namespace {

/// "  Intel(R)  Xeon(R) " as "Intel(R) Xeon(R)": the way Linux prints it.
[[maybe_unused]] std::string WithoutExtraSpaces(const char* text) {
  std::string squeezed;
  for (; *text != '\0'; ++text) {
    const bool starts_word = *text != ' ' && (squeezed.empty() || text[-1] == ' ');
    if (starts_word && !squeezed.empty()) squeezed += ' ';
    if (*text != ' ') squeezed += *text;
  }
  return squeezed;
}

#if defined(__x86_64__)

using Registers = std::array<std::uint32_t, 4>;  // EAX, EBX, ECX, EDX
enum Register { kEax, kEbx, kEcx, kEdx };

std::optional<Registers> Cpuid(std::uint32_t leaf, std::uint32_t subleaf = 0) {
  Registers r{};
  if (__get_cpuid_count(leaf, subleaf, &r[0], &r[1], &r[2], &r[3]) == 0) return std::nullopt;
  return r;
}

bool Bit(std::uint32_t word, int bit) {
  return (word >> bit & 1) != 0;
}

/// XCR0: the register states that the operating system saves.
std::uint32_t SavedStates() {
  const auto leaf1 = Cpuid(1);
  if (!leaf1 || !Bit((*leaf1)[kEcx], 27)) return 0;
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

constexpr std::uint32_t kNoState = 0;
constexpr std::uint32_t kAvxState = 0x6;
constexpr std::uint32_t kAvx512State = 0xe6;
constexpr std::uint32_t kAmxState = 0x60006;

struct InstructionSet {
  const char* name;
  std::uint32_t leaf;
  std::uint32_t subleaf;
  Register word;
  int bit;
  std::uint32_t states;  ///< of SavedStates(), all of which it needs
};

constexpr InstructionSet kInstructionSets[] = {
    {"sse3", 1, 0, kEcx, 0, kNoState},
    {"ssse3", 1, 0, kEcx, 9, kNoState},
    {"sse4a", 0x80000001, 0, kEcx, 6, kNoState},
    {"sse4.1", 1, 0, kEcx, 19, kNoState},
    {"sse4.2", 1, 0, kEcx, 20, kNoState},
    {"popcnt", 1, 0, kEcx, 23, kNoState},
    {"movbe", 1, 0, kEcx, 22, kNoState},
    {"lzcnt", 0x80000001, 0, kEcx, 5, kNoState},
    {"bmi1", 7, 0, kEbx, 3, kNoState},
    {"bmi2", 7, 0, kEbx, 8, kNoState},
    {"avx", 1, 0, kEcx, 28, kAvxState},
    {"f16c", 1, 0, kEcx, 29, kAvxState},
    {"fma4", 0x80000001, 0, kEcx, 16, kAvxState},
    {"fma", 1, 0, kEcx, 12, kAvxState},
    {"avx2", 7, 0, kEbx, 5, kAvxState},
    {"avx_vnni", 7, 1, kEax, 4, kAvxState},
    {"avx_vnni_int8", 7, 1, kEdx, 4, kAvxState},
    {"avx_ne_convert", 7, 1, kEdx, 5, kAvxState},
    {"avx512f", 7, 0, kEbx, 16, kAvx512State},
    {"avx512cd", 7, 0, kEbx, 28, kAvx512State},
    {"avx512bw", 7, 0, kEbx, 30, kAvx512State},
    {"avx512dq", 7, 0, kEbx, 17, kAvx512State},
    {"avx512vl", 7, 0, kEbx, 31, kAvx512State},
    {"avx512_ifma", 7, 0, kEbx, 21, kAvx512State},
    {"avx512_vbmi", 7, 0, kEcx, 1, kAvx512State},
    {"avx512_vbmi2", 7, 0, kEcx, 6, kAvx512State},
    {"avx512_vnni", 7, 0, kEcx, 11, kAvx512State},
    {"avx512_bf16", 7, 1, kEax, 5, kAvx512State},
    {"avx512_fp16", 7, 0, kEdx, 23, kAvx512State},
    {"avx10", 7, 1, kEdx, 19, kAvx512State},
    {"amx_tile", 7, 0, kEdx, 24, kAmxState},
    {"amx_int8", 7, 0, kEdx, 25, kAmxState},
    {"amx_bf16", 7, 0, kEdx, 22, kAmxState},
    {"amx_fp16", 7, 1, kEax, 21, kAmxState},
};

std::vector<std::string> UsableInstructionSets() {
  const std::uint32_t saved = SavedStates();
  std::vector<std::string> names;
  for (const InstructionSet& set : kInstructionSets) {
    const auto registers = Cpuid(set.leaf, set.subleaf);
    const bool usable = registers && Bit((*registers)[set.word], set.bit);
    if (usable && (saved & set.states) == set.states) names.emplace_back(set.name);
  }
  return names;
}

std::string VendorName(const Registers& leaf0) {
  char text[13] = {};
  const std::uint32_t words[] = {leaf0[kEbx], leaf0[kEdx], leaf0[kEcx]};
  std::memcpy(text, words, sizeof words);
  return text;
}

std::string BrandName() {
  char text[49] = {};
  for (std::uint32_t i = 0; i < 3; ++i) {
    const auto part = Cpuid(0x80000002 + i);
    if (!part) return "unknown";
    std::memcpy(text + 16 * i, part->data(), 16);
  }
  return WithoutExtraSpaces(text);
}

void AddNumbers(std::uint32_t signature, Processor& processor) {
  std::uint32_t family = signature >> 8 & 0xf;
  std::uint32_t model = signature >> 4 & 0xf;
  // The extended fields count only in these families.
  if (family == 6 || family == 15) model += (signature >> 16 & 0xf) << 4;
  if (family == 15) family += signature >> 20 & 0xff;
  processor.family_model = std::to_string(family) + "/" + std::to_string(model);
  processor.stepping = std::to_string(signature & 0xf);
}

#else

/// First value of a field of /proc/cpuinfo.
std::optional<std::string> CpuInfo(const std::string& field) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, field.size(), field) != 0) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return std::nullopt;
}

#endif

}  // namespace

#if defined(__x86_64__)

Processor DescribeProcessor() {
  Processor processor;
  if (const auto leaf0 = Cpuid(0)) processor.vendor = VendorName(*leaf0);
  if (const auto leaf1 = Cpuid(1)) AddNumbers((*leaf1)[kEax], processor);
  processor.model = BrandName();
  processor.instruction_sets = UsableInstructionSets();
  return processor;
}

#else

Processor DescribeProcessor() {
  Processor processor;
  processor.vendor = CpuInfo("CPU implementer").value_or(processor.vendor);
  processor.family_model = CpuInfo("CPU architecture").value_or("unknown") + "/" +
                           CpuInfo("CPU part").value_or("unknown");
  processor.model = CpuInfo("model name").value_or(processor.family_model);
  processor.stepping = CpuInfo("CPU revision").value_or(processor.stepping);
  std::istringstream features(CpuInfo("Features").value_or(""));
  for (std::string name; features >> name;) processor.instruction_sets.push_back(name);
  return processor;
}

#endif

}  // namespace verbatim
