# Finds the Python environment that scripts/setup makes for the package's tests, and decides whether
# this build has the package's compiled part. Sets VERBATIM_PYTHON_ENVIRONMENT (a folder, or empty).
#
# The environment lies beside LibTorch's, is of the same Python, and sees LibTorch's packages. Its
# name holds a hash of python/requirements-test.txt: other requirements are another environment.

set(VERBATIM_PYTHON_ENVIRONMENT "")
if(VERBATIM_PYTHON OR NOT VERBATIM_TESTS OR NOT VERBATIM_TRAINER)
  return()
endif()
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  message(STATUS "Python package: left out, as this build is sanitized and Python is not")
  return()
endif()
if(NOT LibTorch_PYTHON)
  message(WARNING "The tests of the Python package are not registered: LibTorch in ${LibTorch_HOME} "
    "belongs to no Python environment.")
  return()
endif()

if(DEFINED ENV{XDG_CACHE_HOME})
  set(cache "$ENV{XDG_CACHE_HOME}")
else()
  set(cache "$ENV{HOME}/.cache")
endif()
set(requirements "${PROJECT_SOURCE_DIR}/python/requirements-test.txt")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${requirements}")
file(SHA256 "${requirements}" hash)
string(SUBSTRING "${hash}" 0 12 hash)
execute_process(COMMAND "${LibTorch_PYTHON}" -c "import sys; print('%d.%d' % sys.version_info[:2])"
  OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set(environment "${cache}/verbatim/python${version}-${hash}")
if(EXISTS "${environment}/bin/python3")
  set(VERBATIM_PYTHON_ENVIRONMENT "${environment}")
  set(Python_EXECUTABLE "${environment}/bin/python3")
else()
  message(WARNING "The tests of the Python package are not registered: ${environment} does not "
    "exist. Run scripts/setup.")
endif()
