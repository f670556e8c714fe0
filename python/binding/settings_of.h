// Settings between Python and records.
#pragma once

#include <nanobind/nanobind.h>

#include "store/settings.h"

namespace verbatim::python {

/// Of a dict from str to str, bool, int or float. Raises UsageError for other values.
Settings SettingsOf(const nanobind::dict& values);

}  // namespace verbatim::python
