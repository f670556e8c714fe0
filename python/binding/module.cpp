// verbatim._native: digests, the recorder and the reader, as the Python side uses them.
#include <fmt/ranges.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include <map>
#include <string>

#include "base/processor.h"
#include "bindings.h"

namespace {

// Under the keys that the environments of all records have.
std::map<std::string, std::string> ProcessorFacts() {
  const verbatim::Processor processor = verbatim::DescribeProcessor();
  return {{"cpu.vendor", processor.vendor},
          {"cpu.model", processor.model},
          {"cpu.family_model", processor.family_model},
          {"cpu.stepping", processor.stepping},
          {"cpu.instruction_sets", fmt::format("{}", fmt::join(processor.instruction_sets, " "))}};
}

}  // namespace

NB_MODULE(_native, module) {
  module.def("version", [] { return VERBATIM_VERSION; });
  module.def("processor_facts", &ProcessorFacts);
  verbatim::python::BindDigests(module);
  verbatim::python::BindRecorder(module);
  verbatim::python::BindReader(module);
}
