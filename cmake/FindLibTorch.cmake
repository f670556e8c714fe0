# Finds LibTorch: the C++ libraries and headers inside a PyTorch wheel or a LibTorch zip.
#
# PyTorch's own package (`find_package(Torch)`) is not used: with a CUDA wheel it demands a CUDA
# toolkit even for a CPU build, and its bundled CUDA modules conflict with those of recent CMakes.
# Here every library is taken by its full path from one folder, the home: the one that holds
# `lib/libtorch_cpu.so` and `include/`.
#
# The home is looked for in this order; once found it stays in the cache entry LibTorch_HOME:
#   1. the environment variable VERBATIM_TORCH (then nowhere else);
#   2. every entry of CMAKE_PREFIX_PATH, as CMake and as environment variable: the root of
#      a LibTorch zip, `…/site-packages/torch`, `…/site-packages`, a virtual environment or other
#      prefix, or `…/torch/share/cmake` (what `torch.utils.cmake_prefix_path` prints);
#   3. the virtual environment that scripts/setup makes in ${XDG_CACHE_HOME:-~/.cache}/verbatim.
#
# Result variables:
#   LibTorch_FOUND, LibTorch_VERSION   as usual; the version is like "2.11.0"
#   LibTorch_CUDA_VERSION              CUDA version it was built for ("13.0"), "unknown", or empty
#   LibTorch_PYTHON                    interpreter that can import torch from there, or empty
#
# Imported targets:
#   LibTorch::cpu     torch_cpu and c10. libtorch.so is left out on purpose: it is an empty library
#                     whose only effect, in a CUDA build, is to load all of CUDA (0.7 s).
#   LibTorch::cudart  the CUDA runtime that LibTorch itself loads, and its headers   (CUDA builds)
#   LibTorch::cuda    LibTorch::cpu, torch_cuda, c10_cuda and LibTorch::cudart       (CUDA builds)
#   LibTorch::nccl    NCCL as LibTorch uses it, where it is a library of its own     (CUDA wheels)

set(LibTorch_PINNED_VERSION_FILE "${CMAKE_CURRENT_LIST_DIR}/libtorch-version.txt")

# Folders that may be a home, in order of preference.
function(_libtorch_candidates out_var)
  if(DEFINED ENV{VERBATIM_TORCH})
    set(prefixes "$ENV{VERBATIM_TORCH}")
  else()
    file(TO_CMAKE_PATH "$ENV{CMAKE_PREFIX_PATH}" from_environment)
    set(prefixes ${CMAKE_PREFIX_PATH} ${from_environment})
    file(STRINGS "${LibTorch_PINNED_VERSION_FILE}" version LIMIT_COUNT 1)
    if(DEFINED ENV{XDG_CACHE_HOME} AND NOT "$ENV{XDG_CACHE_HOME}" STREQUAL "")
      list(APPEND prefixes "$ENV{XDG_CACHE_HOME}/verbatim/torch-${version}")
    else()
      list(APPEND prefixes "$ENV{HOME}/.cache/verbatim/torch-${version}")
    endif()
  endif()
  set(candidates)
  foreach(prefix IN LISTS prefixes)
    file(GLOB in_site_packages "${prefix}/lib/python3*/site-packages/torch")
    list(APPEND candidates
      "${prefix}" "${prefix}/torch" "${prefix}/libtorch" ${in_site_packages} "${prefix}/../..")
  endforeach()
  set(${out_var} "${candidates}" PARENT_SCOPE)
endfunction()

# The folder of a CUDA wheel's own copies of NVIDIA's libraries (empty for a zip).
function(_libtorch_nvidia_folder out_var)
  get_filename_component(folder "${LibTorch_HOME}/../nvidia" ABSOLUTE)
  if(NOT EXISTS "${folder}")
    set(folder "")
  endif()
  set(${out_var} "${folder}" PARENT_SCOPE)
endfunction()

# Sets LibTorch_VERSION from a file that wheels and zips both have.
function(_libtorch_read_version)
  set(version "")
  set(file "${LibTorch_HOME}/share/cmake/Torch/TorchConfigVersion.cmake")
  if(EXISTS "${file}")
    file(STRINGS "${file}" lines REGEX "PACKAGE_VERSION \"")
    if("${lines}" MATCHES "PACKAGE_VERSION \"([0-9]+\\.[0-9]+\\.[0-9]+)")
      set(version "${CMAKE_MATCH_1}")
    endif()
  endif()
  set(LibTorch_VERSION "${version}" PARENT_SCOPE)
endfunction()

# Sets LibTorch_CUDA_VERSION; a wheel says it in version.py, a zip in build-version ("2.4.1+cu121").
function(_libtorch_read_cuda_version)
  set(cuda_version "")
  if(EXISTS "${LibTorch_HOME}/lib/libtorch_cuda.so")
    set(cuda_version "unknown")
    if(EXISTS "${LibTorch_HOME}/version.py")
      file(STRINGS "${LibTorch_HOME}/version.py" line REGEX "^cuda[ :=]")
      if("${line}" MATCHES "'([0-9]+\\.[0-9]+)'")
        set(cuda_version "${CMAKE_MATCH_1}")
      endif()
    elseif(EXISTS "${LibTorch_HOME}/build-version")
      file(STRINGS "${LibTorch_HOME}/build-version" line LIMIT_COUNT 1)
      if("${line}" MATCHES "\\+cu([0-9]+)([0-9])$")
        set(cuda_version "${CMAKE_MATCH_1}.${CMAKE_MATCH_2}")
      endif()
    endif()
  endif()
  set(LibTorch_CUDA_VERSION "${cuda_version}" PARENT_SCOPE)
endfunction()

# Sets LibTorch_CXX11_ABI: 1 or 0. Builds that do not say (2.11 and later) have only the new one.
function(_libtorch_read_abi)
  set(abi 1)
  set(file "${LibTorch_HOME}/share/cmake/Torch/TorchConfig.cmake")
  if(EXISTS "${file}")
    file(STRINGS "${file}" flags REGEX "_GLIBCXX_USE_CXX11_ABI=[01]")
    if("${flags}" MATCHES "_GLIBCXX_USE_CXX11_ABI=0")
      set(abi 0)
    endif()
  endif()
  set(LibTorch_CXX11_ABI ${abi} PARENT_SCOPE)
endfunction()

# Sets LibTorch_PYTHON where the home lies in a virtual environment or another Python prefix.
function(_libtorch_find_python)
  set(python "${LibTorch_HOME}/../../../../bin/python3")
  if(EXISTS "${LibTorch_HOME}/version.py" AND EXISTS "${python}")
    # The folder is made absolute, the link is kept: it is how Python finds its environment.
    get_filename_component(folder "${LibTorch_HOME}/../../../../bin" ABSOLUTE)
    set(python "${folder}/python3")
  else()
    set(python "")
  endif()
  set(LibTorch_PYTHON "${python}" PARENT_SCOPE)
endfunction()

# Those of `names` (compile definitions) with which this LibTorch was built, as it exports them.
function(_libtorch_definitions out_var)
  set(found)
  set(file "${LibTorch_HOME}/share/cmake/Caffe2/Caffe2Targets.cmake")
  if(EXISTS "${file}")
    file(STRINGS "${file}" lines REGEX "INTERFACE_COMPILE_DEFINITIONS \"")
    foreach(name IN LISTS ARGN)
      if("${lines}" MATCHES "[\";]${name}[\";]")
        list(APPEND found ${name})
      endif()
    endforeach()
  endif()
  set(${out_var} "${found}" PARENT_SCOPE)
endfunction()

function(_libtorch_add_library name location)
  add_library(LibTorch::${name} SHARED IMPORTED)
  set_target_properties(LibTorch::${name} PROPERTIES IMPORTED_LOCATION "${location}")
  if(location MATCHES "\\.so\\.[0-9]+$")
    get_filename_component(soname "${location}" NAME)
    set_target_properties(LibTorch::${name} PROPERTIES IMPORTED_SONAME "${soname}")
  endif()
endfunction()

# Imported targets' include folders are passed with -isystem, so LibTorch's headers never warn.
function(_libtorch_add_cpu)
  _libtorch_definitions(definitions USE_DISTRIBUTED USE_C10D_GLOO)
  _libtorch_add_library(c10 "${LibTorch_HOME}/lib/libc10.so")
  _libtorch_add_library(torch_cpu "${LibTorch_HOME}/lib/libtorch_cpu.so")
  add_library(LibTorch::cpu INTERFACE IMPORTED)
  if(EXISTS "${LibTorch_HOME}/include/fmt/format.h")
    # The wheel's own fmt is found before the system's and has no library.
    list(APPEND definitions FMT_HEADER_ONLY=1)
  endif()
  set_target_properties(LibTorch::cpu PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES
      "${LibTorch_HOME}/include;${LibTorch_HOME}/include/torch/csrc/api/include"
    INTERFACE_COMPILE_DEFINITIONS "_GLIBCXX_USE_CXX11_ABI=${LibTorch_CXX11_ABI};${definitions}"
    INTERFACE_LINK_LIBRARIES "LibTorch::torch_cpu;LibTorch::c10")
endfunction()

# A wheel brings cudart in nvidia/cu13 or nvidia/cuda_runtime, a zip in its own lib folder.
function(_libtorch_add_cudart nvidia)
  string(REGEX MATCH "^[0-9]+" major "${LibTorch_CUDA_VERSION}")
  file(GLOB libraries
    "${nvidia}/cu${major}/lib/libcudart.so.${major}*"
    "${nvidia}/cuda_runtime/lib/libcudart.so.${major}*"
    "${LibTorch_HOME}/lib/libcudart*.so.${major}*")
  if(NOT libraries)
    return()
  endif()
  list(GET libraries 0 library)
  _libtorch_add_library(cudart "${library}")
  file(GLOB include_dirs LIST_DIRECTORIES true "${nvidia}/*/include")
  set_target_properties(LibTorch::cudart PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${include_dirs}")
endfunction()

function(_libtorch_add_nccl nvidia)
  file(GLOB library "${nvidia}/nccl/lib/libnccl.so.2")
  if(library AND EXISTS "${nvidia}/nccl/include/nccl.h")
    _libtorch_definitions(definitions USE_C10D_NCCL)
    _libtorch_add_library(nccl "${library}")
    set_target_properties(LibTorch::nccl PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES "${nvidia}/nccl/include"
      INTERFACE_COMPILE_DEFINITIONS "${definitions}")
  endif()
endfunction()

# No symbol of libtorch_cuda is referenced, it registers its kernels when it is loaded: hence
# --no-as-needed, once as an option because CMake may reorder flags among libraries.
function(_libtorch_add_cuda)
  _libtorch_nvidia_folder(nvidia)
  _libtorch_add_cudart("${nvidia}")
  _libtorch_add_nccl("${nvidia}")
  if(NOT TARGET LibTorch::cudart)
    return()
  endif()
  set(torch_cuda "${LibTorch_HOME}/lib/libtorch_cuda.so")
  _libtorch_add_library(torch_cuda "${torch_cuda}")
  _libtorch_add_library(c10_cuda "${LibTorch_HOME}/lib/libc10_cuda.so")
  add_library(LibTorch::cuda INTERFACE IMPORTED)
  set_target_properties(LibTorch::cuda PROPERTIES
    INTERFACE_LINK_OPTIONS "LINKER:--push-state,--no-as-needed,${torch_cuda},--pop-state"
    INTERFACE_LINK_LIBRARIES
      "LibTorch::torch_cuda;LibTorch::c10_cuda;LibTorch::cudart;LibTorch::cpu")
endfunction()

_libtorch_candidates(_libtorch_paths)
find_path(LibTorch_HOME NAMES lib/libtorch_cpu.so PATHS ${_libtorch_paths} NO_DEFAULT_PATH
  DOC "Folder that holds LibTorch's lib and include")
mark_as_advanced(LibTorch_HOME)
unset(_libtorch_paths)

set(_libtorch_reason "")
if(NOT LibTorch_HOME)
  if(DEFINED ENV{VERBATIM_TORCH})
    set(_libtorch_reason "VERBATIM_TORCH is '$ENV{VERBATIM_TORCH}', which holds no LibTorch.")
  endif()
  string(APPEND _libtorch_reason "
  Run scripts/setup, which installs it, or name yours:
    cmake -DCMAKE_PREFIX_PATH=FOLDER …   (a LibTorch zip, or the Python environment with torch)
  The parts that need no LibTorch build with -DVERBATIM_TRAINER=OFF.
")
else()
  get_filename_component(LibTorch_HOME "${LibTorch_HOME}" ABSOLUTE)
  _libtorch_read_version()
  _libtorch_read_cuda_version()
  _libtorch_read_abi()
  _libtorch_find_python()
  if(LibTorch_VERSION VERSION_LESS "${LibTorch_FIND_VERSION}")
    set(_libtorch_reason "
  LibTorch ${LibTorch_VERSION} in ${LibTorch_HOME} is too old:
  ${LibTorch_FIND_VERSION} or newer is needed.
  Name a newer one in CMAKE_PREFIX_PATH, or name none and run scripts/setup.
")
  elseif(NOT LibTorch_CXX11_ABI)
    set(_libtorch_reason "
  LibTorch ${LibTorch_VERSION} in ${LibTorch_HOME} was built with the old C++ ABI
  (_GLIBCXX_USE_CXX11_ABI=0), which cannot be linked with the system's C++ libraries. Take a wheel
  of 2.7 or newer, or the zip called 'cxx11-abi', or name none and run scripts/setup.
")
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_HOME LibTorch_CXX11_ABI VERSION_VAR LibTorch_VERSION
  REASON_FAILURE_MESSAGE "${_libtorch_reason}")

if(LibTorch_FOUND AND NOT TARGET LibTorch::cpu)
  _libtorch_add_cpu()
  if(LibTorch_CUDA_VERSION)
    _libtorch_add_cuda()
  endif()
endif()
unset(_libtorch_reason)
