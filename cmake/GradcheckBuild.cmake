# Compilers, warnings and the outside world. Options stay few: a build differs by preset, not by switches.

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON) # POSIX and argp
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "build type" FORCE)
endif()

option(GCK_CUDA "Build the cuda device and its kernels where nvcc is found" ON)
option(GCK_STATIC "Link MPFR, GMP, jansson, xxHash and Boost statically, for machines without them" OFF)
set(GCK_SANITIZE "" CACHE STRING "Sanitizers for everything that runs on the CPU, e.g. address,undefined")
set(GCK_CUDA_ARCHITECTURES 90 CACHE STRING "CUDA architectures of the built-in kernels")
set(GCK_SHARED_DIR "${CMAKE_CURRENT_SOURCE_DIR}/../shared" CACHE PATH "Folder that holds captures/; tests that need it are skipped where it is missing")

find_program(GCK_CCACHE ccache)
if(GCK_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${GCK_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${GCK_CCACHE})
endif()

# Warnings are errors. Floating point is sacred: no contraction, no fast-math, in references and tests alike.
add_library(gck_flags INTERFACE)
target_compile_options(gck_flags INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall -Wextra -Wconversion -Wshadow -Werror -ffp-contract=off -fno-finite-math-only -fvisibility=hidden>
  $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes -Wmissing-prototypes>)
target_include_directories(gck_flags INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)
target_compile_definitions(gck_flags INTERFACE _GNU_SOURCE GCK_VERSION="${PROJECT_VERSION}")
if(GCK_SANITIZE)
  target_compile_options(gck_flags INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${GCK_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer>)
  target_link_options(gck_flags INTERFACE $<$<LINK_LANGUAGE:C,CXX>:-fsanitize=${GCK_SANITIZE}>)
endif()

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

# gck_outside(NAME pkg): an imported target for a packaged library, static where GCK_STATIC asks for it.
function(gck_outside target package)
  pkg_check_modules(${target} REQUIRED IMPORTED_TARGET ${package})
  add_library(outside_${target} INTERFACE)
  if(GCK_STATIC)
    target_include_directories(outside_${target} INTERFACE ${${target}_INCLUDE_DIRS})
    foreach(lib IN LISTS ${target}_LIBRARIES)
      find_library(${target}_${lib}_ARCHIVE NAMES lib${lib}.a HINTS ${${target}_LIBRARY_DIRS})
      if(${target}_${lib}_ARCHIVE)
        target_link_libraries(outside_${target} INTERFACE ${${target}_${lib}_ARCHIVE})
      else()
        target_link_libraries(outside_${target} INTERFACE ${lib})
      endif()
    endforeach()
  else()
    target_link_libraries(outside_${target} INTERFACE PkgConfig::${target})
  endif()
endfunction()
gck_outside(jansson jansson)
gck_outside(xxhash libxxhash)
gck_outside(mpfr mpfr) # brings gmp

set(Boost_USE_STATIC_LIBS ${GCK_STATIC})
find_package(Boost 1.74 REQUIRED COMPONENTS context)

set(GCK_HAVE_CUDA OFF)
if(GCK_CUDA)
  include(CheckLanguage)
  set(CMAKE_CUDA_ARCHITECTURES ${GCK_CUDA_ARCHITECTURES})
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    set(CMAKE_CUDA_STANDARD 17)
    find_package(CUDAToolkit REQUIRED)
    set(GCK_HAVE_CUDA ON)
  else()
    message(STATUS "gradcheck: no nvcc found, the cuda device is not built")
  endif()
endif()
