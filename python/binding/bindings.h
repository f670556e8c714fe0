// What each file of the module adds to it.
#pragma once

#include <nanobind/nanobind.h>

namespace verbatim::python {

void BindDigests(nanobind::module_& module);
void BindRecorder(nanobind::module_& module);
void BindReader(nanobind::module_& module);

}  // namespace verbatim::python
