// The processor that this process runs on, asked of the processor itself.
//
// On x86 the CPUID instruction answers: under an emulator, and in a virtual machine, that is what
// the process can really use, where /proc/cpuinfo may describe the host. On other processors Linux
// is asked.
#pragma once

#include <string>
#include <vector>

namespace verbatim {

struct Processor {
  std::string vendor = "unknown";        ///< "GenuineIntel"
  std::string model = "unknown";         ///< "Intel Core Processor (Haswell)"
  std::string family_model = "unknown";  ///< family and model, decimal: "6/60"
  std::string stepping = "unknown";      ///< decimal
  /// Instruction sets by which numeric libraries choose their kernels, from the oldest on: "sse3",
  /// "sse4.1", "avx2", "fma", "avx512f", "amx_tile", … Only those that can be used: the operating
  /// system must save their registers too.
  std::vector<std::string> instruction_sets;
};

/// Fields that cannot be told stay "unknown". Thread-safe.
Processor DescribeProcessor();

}  // namespace verbatim
