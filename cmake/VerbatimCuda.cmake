# Decides whether CUDA is built, sets VERBATIM_CUDA_ENABLED, and says what was decided and why.
#
# AUTO builds it exactly when nvcc works and LibTorch is a CUDA build of the same major version: the
# two share one CUDA runtime in the process. ON is an error where AUTO would say no.

set(VERBATIM_CUDA_ENABLED OFF)

# Sets VERBATIM_NVCC (cached path) and nvcc_version ("13.0", or empty).
function(verbatim_find_nvcc)
  if(CMAKE_CUDA_COMPILER)
    set(VERBATIM_NVCC "${CMAKE_CUDA_COMPILER}" CACHE FILEPATH "CUDA compiler")
  elseif(EXISTS "$ENV{CUDACXX}")
    set(VERBATIM_NVCC "$ENV{CUDACXX}" CACHE FILEPATH "CUDA compiler")
  else()
    find_program(VERBATIM_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda
      PATH_SUFFIXES bin DOC "CUDA compiler")
  endif()
  mark_as_advanced(VERBATIM_NVCC)
  set(version "")
  if(VERBATIM_NVCC)
    execute_process(COMMAND "${VERBATIM_NVCC}" --version OUTPUT_VARIABLE text ERROR_QUIET)
    if("${text}" MATCHES "release ([0-9]+\\.[0-9]+)")
      set(version "${CMAKE_MATCH_1}")
    endif()
  endif()
  set(nvcc_version "${version}" PARENT_SCOPE)
endfunction()

# Says in `out_var` what keeps CUDA from being built; empty: nothing.
function(verbatim_cuda_obstacle out_var)
  string(REGEX MATCH "^[0-9]+" nvcc_major "${nvcc_version}")
  string(REGEX MATCH "^[0-9]+" torch_major "${LibTorch_CUDA_VERSION}")
  set(obstacle "")
  if(NOT VERBATIM_TRAINER)
    set(obstacle "VERBATIM_TRAINER is OFF")
  elseif(NOT LibTorch_CUDA_VERSION)
    set(obstacle "LibTorch ${LibTorch_VERSION} in ${LibTorch_HOME} is a CPU build")
  elseif(NOT VERBATIM_NVCC OR NOT nvcc_version)
    set(obstacle "no CUDA compiler (nvcc) was found on PATH, in CUDACXX or in /usr/local/cuda")
  elseif(NOT torch_major STREQUAL nvcc_major)
    set(obstacle "nvcc is CUDA ${nvcc_version}, LibTorch is built for ${LibTorch_CUDA_VERSION}")
  elseif(NOT TARGET LibTorch::cuda)
    set(obstacle "the CUDA runtime library that LibTorch uses was not found beside it")
  endif()
  set(${out_var} "${obstacle}" PARENT_SCOPE)
endfunction()

# Real code for A100, H100 and B200, and PTX for what comes after, as far as this nvcc knows them.
function(verbatim_choose_cuda_architectures)
  if(DEFINED CMAKE_CUDA_ARCHITECTURES)
    return()
  endif()
  execute_process(COMMAND "${VERBATIM_NVCC}" --list-gpu-arch OUTPUT_VARIABLE known)
  set(chosen)
  foreach(architecture 80 90 100)
    if("${known}" MATCHES "compute_${architecture}[\r\n]")
      list(APPEND chosen ${architecture})
    endif()
  endforeach()
  list(POP_BACK chosen newest)
  list(TRANSFORM chosen APPEND "-real")
  list(APPEND chosen ${newest})
  set(CMAKE_CUDA_ARCHITECTURES "${chosen}" CACHE STRING "GPU architectures to build for")
endfunction()

if(NOT VERBATIM_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "VERBATIM_CUDA is '${VERBATIM_CUDA}': it must be AUTO, ON or OFF.")
endif()
if(VERBATIM_CUDA STREQUAL "OFF")
  message(STATUS "CUDA: off, as VERBATIM_CUDA says")
  return()
endif()

verbatim_find_nvcc()
verbatim_cuda_obstacle(cuda_obstacle)
if(NOT cuda_obstacle)
  verbatim_choose_cuda_architectures()
  # LibTorch's own runtime is linked (LibTorch::cudart); a second one would be a second state.
  set(CMAKE_CUDA_RUNTIME_LIBRARY None)
  if(NOT CMAKE_CUDA_COMPILER)
    unset(CMAKE_CUDA_COMPILER CACHE)  # an earlier failure is tried again
    set(ENV{CUDACXX} "${VERBATIM_NVCC}")
    include(CheckLanguage)
    check_language(CUDA)
  endif()
  if(NOT CMAKE_CUDA_COMPILER)
    set(cuda_obstacle "${VERBATIM_NVCC} compiles nothing here (CMakeFiles/CMakeError.log says why)")
  endif()
endif()
if(cuda_obstacle AND VERBATIM_CUDA STREQUAL "ON")
  message(FATAL_ERROR "VERBATIM_CUDA is ON, but ${cuda_obstacle}.\n"
    "Provide it, or configure with -DVERBATIM_CUDA=OFF.")
elseif(cuda_obstacle)
  message(STATUS "CUDA: off, because ${cuda_obstacle}")
  return()
endif()

enable_language(CUDA)
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)
if(CCACHE_PROGRAM AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER "${CCACHE_PROGRAM}")
endif()
target_compile_options(verbatim_options INTERFACE
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>
  $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${VERBATIM_WERROR}>>:-Werror=all-warnings>
  $<$<AND:$<COMPILE_LANGUAGE:CUDA>,$<BOOL:${VERBATIM_WERROR}>>:-Xcompiler=-Werror>)
get_target_property(cudart_include_dirs LibTorch::cudart INTERFACE_INCLUDE_DIRECTORIES)
if(NOT cudart_include_dirs)
  # A LibTorch zip has no CUDA headers: the toolkit's, of the same major version, stand in.
  set_target_properties(LibTorch::cudart PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES}")
endif()
set(VERBATIM_CUDA_ENABLED ON)
message(STATUS "CUDA: on, nvcc ${nvcc_version} and LibTorch ${LibTorch_VERSION} for CUDA "
  "${LibTorch_CUDA_VERSION}, architectures ${CMAKE_CUDA_ARCHITECTURES}")
