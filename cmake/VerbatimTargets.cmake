# Settings and helpers that every target of the project shares.
include(GNUInstallDirs)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

# Installed programs find LibTorch where they were linked against it.
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)

find_program(CCACHE_PROGRAM ccache DOC "Compiler cache")
mark_as_advanced(CCACHE_PROGRAM)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The sloppiness, and -fpch-preprocess below, are what lets ccache serve precompiled headers.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros "${CCACHE_PROGRAM}")
endif()

add_library(verbatim_options INTERFACE)
target_include_directories(verbatim_options INTERFACE "${PROJECT_SOURCE_DIR}")
# Learning rates, splits and initial weights are part of a run's bits: no fused multiply-add where
# a formula has none.
target_compile_options(verbatim_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wno-missing-field-initializers>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${VERBATIM_WERROR}>>:-Werror>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-fpch-preprocess>)

# verbatim_library(NAME SOURCES … [LINKS …]): the static library of one folder.
function(verbatim_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_library(verbatim_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(verbatim_${name} PUBLIC verbatim_options ${ARG_LINKS})
  set_target_properties(verbatim_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
endfunction()

# GoogleTest's headers cost each test file five seconds: precompiled once, for all tests.
function(verbatim_test_headers)
  file(CONFIGURE OUTPUT test_headers.cpp CONTENT "// Holds the tests' precompiled header.\n")
  add_library(verbatim_test_headers OBJECT "${CMAKE_CURRENT_BINARY_DIR}/test_headers.cpp")
  target_link_libraries(verbatim_test_headers PRIVATE verbatim_options GTest::gmock)
  target_precompile_headers(verbatim_test_headers PRIVATE
    <gmock/gmock.h> <gtest/gtest.h> <filesystem> <fstream> <functional> <map> <optional> <sstream>
    <string> <vector>)
endfunction()

# verbatim_test(NAME SOURCES … [LINKS …] [OWN_HEADERS]): one GoogleTest executable, each case a ctest
# entry. OWN_HEADERS: it precompiles other headers.
function(verbatim_test name)
  cmake_parse_arguments(ARG "OWN_HEADERS" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINKS} GTest::gmock GTest::gtest_main)
  if(NOT ARG_OWN_HEADERS)
    target_precompile_headers(${name} REUSE_FROM verbatim_test_headers)
  endif()
  gtest_discover_tests(${name} NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600)
endfunction()
