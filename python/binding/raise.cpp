#include "raise.h"

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace verbatim::python {

void Raise(const Error& error) {
  const nb::object exception =
      nb::module_::import_("verbatim.errors")
          .attr("error_of")(ExitCode(error.kind), error.message.c_str(), error.hint.c_str());
  PyErr_SetObject(exception.type().ptr(), exception.ptr());
  throw nb::python_error();
}

}  // namespace verbatim::python
