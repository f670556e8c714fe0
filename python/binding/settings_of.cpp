#include "settings_of.h"

#include <fmt/format.h>

#include <string>

#include "raise.h"

namespace nb = nanobind;

namespace verbatim::python {
namespace {

std::string Utf8Of(nb::handle text) {
  Py_ssize_t size = 0;
  const char* const bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (bytes != nullptr) return {bytes, static_cast<std::size_t>(size)};
  PyErr_Clear();
  Raise({ErrorKind::kUsage, "a setting's name or text is not UTF-8",
         "Text that came from files or arguments may have lone surrogates: leave them out."});
}

// An int that 64 bits do not hold becomes the float64 next to it, as in JSON readers.
std::string TextOf(const std::string& name, nb::handle value) {
  PyObject* const object = value.ptr();
  if (PyBool_Check(object)) return SettingText(object == Py_True);
  if (PyUnicode_Check(object)) return SettingText(Utf8Of(value));
  if (PyLong_Check(object)) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow == 0) return SettingText(static_cast<std::int64_t>(number));
  }
  const double number = PyFloat_AsDouble(object);
  if (PyErr_Occurred() == nullptr) return SettingText(number);
  PyErr_Clear();
  Raise({ErrorKind::kUsage,
         fmt::format("setting \"{}\" is a {}", name, nb::type_name(value.type()).c_str()),
         "A setting is a string, a number or a bool."});
}

}  // namespace

Settings SettingsOf(const nb::dict& values) {
  Settings settings;
  for (const auto& [key, value] : values) {
    const std::string name = Utf8Of(nb::str(key));
    settings.insert_or_assign(name, TextOf(name, value));
  }
  return settings;
}

}  // namespace verbatim::python
