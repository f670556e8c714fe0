# Every dependency is found here; docs/dependencies.md says why each was chosen.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json 3.10 REQUIRED)
find_package(CLI11 REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(SQLiteCpp REQUIRED)
find_package(ZLIB REQUIRED)
find_path(TL_EXPECTED_INCLUDE_DIR tl/expected.hpp REQUIRED)
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
find_library(XXHASH_LIBRARY xxhash REQUIRED)
add_library(xxhash UNKNOWN IMPORTED)
set_target_properties(xxhash PROPERTIES
  IMPORTED_LOCATION "${XXHASH_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${XXHASH_INCLUDE_DIR}")
find_path(SODIUM_INCLUDE_DIR sodium.h REQUIRED)
find_library(SODIUM_LIBRARY sodium REQUIRED)
add_library(sodium UNKNOWN IMPORTED)
set_target_properties(sodium PROPERTIES
  IMPORTED_LOCATION "${SODIUM_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${SODIUM_INCLUDE_DIR}")
find_path(ZEROMQ_INCLUDE_DIR zmq.hpp REQUIRED)
find_library(ZEROMQ_LIBRARY zmq REQUIRED)
add_library(zeromq UNKNOWN IMPORTED)
set_target_properties(zeromq PROPERTIES
  IMPORTED_LOCATION "${ZEROMQ_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES "${ZEROMQ_INCLUDE_DIR}")
find_file(D3_SCRIPT d3.min.js
  PATHS /usr/share/nodejs/d3/dist /usr/lib/nodejs/d3/dist
  DOC "D3 for HTML reports, one minified file")
if(NOT D3_SCRIPT)
  message(FATAL_ERROR "D3 is missing: no d3.min.js found. HTML reports carry it.
  Debian and Ubuntu: apt-get install node-d3 (scripts/setup does). Elsewhere: -DD3_SCRIPT=/path/d3.min.js")
endif()

if(VERBATIM_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
if(VERBATIM_BENCH)
  find_package(benchmark REQUIRED)
endif()
if(VERBATIM_TRAINER)
  find_package(LibTorch 2.4 REQUIRED)
endif()
