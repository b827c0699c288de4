# The built-in kernels as loadable libraries: lib/gradcheck/gradcheck-host.so runs the .cu files on the CPU through the
# SIMT executor, lib/gradcheck/gradcheck-cuda.so is the same files compiled by nvcc where it is there.

set(GCK_KERNEL_DIR ${CMAKE_BINARY_DIR}/lib/gradcheck)

# Floating point on both sides: no contraction (a fused multiply-add is written out where it is wanted), so that the
# vectorised and the strided path of a kernel round alike.
set(GCK_CUDA_FLAGS --fmad=false --Werror=all-warnings --expt-relaxed-constexpr
  -Xcompiler=-Wall,-Wextra,-Werror,-ffp-contract=off,-fvisibility=hidden)

# gck_simt: the executor, a static library that goes into every host kernel library.
function(gck_simt_library)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/gpu/simt/*.cpp)
  add_library(gck_simt STATIC ${sources})
  target_link_libraries(gck_simt PRIVATE gck_flags PUBLIC Boost::context Threads::Threads)
  target_include_directories(gck_simt PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)
  # Kernels are loops over small arrays; without -O2 a fibre switch costs more than it computes.
  target_compile_options(gck_simt PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O2>)
endfunction()

# gck_race: what watched kernels call at every access. It must not be instrumented itself, nor linked with libtsan.
set(GCK_HAVE_RACE OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT GCK_SANITIZE)
  set(GCK_HAVE_RACE ON)
endif()
include(${CMAKE_CURRENT_LIST_DIR}/GradcheckRace.cmake) # GCK_RACE_OPTIONS

function(gck_race_library)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/gpu/race/*.cpp)
  add_library(gck_race STATIC ${sources})
  target_link_libraries(gck_race PRIVATE gck_flags PUBLIC gck_simt)
  target_compile_options(gck_race PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O2>)
endfunction()

# gck_host_wrapper(output cu): a one-line .cpp that includes the .cu, so that no source property is needed.
function(gck_host_wrapper output cu)
  get_filename_component(name ${cu} NAME_WE)
  set(wrapper ${CMAKE_BINARY_DIR}/generated/kernels/${name}_host.cpp)
  file(CONFIGURE OUTPUT ${wrapper} CONTENT "#include \"${cu}\"\n" @ONLY)
  set_source_files_properties(${wrapper} PROPERTIES OBJECT_DEPENDS ${cu})
  set(${output} ${wrapper} PARENT_SCOPE)
endfunction()

function(gck_kernel_library target)
  set_target_properties(${target} PROPERTIES PREFIX "" SUFFIX ".so" LIBRARY_OUTPUT_DIRECTORY ${GCK_KERNEL_DIR})
  install(TARGETS ${target} LIBRARY DESTINATION lib/gradcheck)
endfunction()

# gck_kernels(): the libraries of all ops that gck_add_op listed.
function(gck_kernels)
  gck_simt_library()
  set(wrappers "")
  set(kernels "")
  foreach(op IN LISTS GCK_OPS)
    set(cu ${CMAKE_SOURCE_DIR}/gpu/${op}.cu)
    gck_host_wrapper(wrapper ${cu})
    list(APPEND wrappers ${wrapper})
    list(APPEND kernels ${cu})
  endforeach()

  add_library(gradcheck-host MODULE ${wrappers} ${CMAKE_SOURCE_DIR}/gpu/kernels/table.cpp)
  target_link_libraries(gradcheck-host PRIVATE gck_flags gck_simt)
  target_compile_options(gradcheck-host PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O2>)
  gck_kernel_library(gradcheck-host)
  if(GCK_HAVE_RACE)
    gck_race_library()
    add_library(gradcheck-host-race MODULE ${wrappers} ${CMAKE_SOURCE_DIR}/gpu/kernels/table.cpp)
    target_link_libraries(gradcheck-host-race PRIVATE gck_flags gck_race)
    target_compile_options(gradcheck-host-race PRIVATE ${GCK_RACE_OPTIONS})
    gck_kernel_library(gradcheck-host-race)
    add_dependencies(gradcheck-host gradcheck-host-race) # whoever wants the kernels wants them watched too
  endif()

  if(GCK_HAVE_CUDA)
    # The device comes along (gpu/cuda/cuda_device.h says why), with core/status.c, so that the library stands alone.
    file(GLOB only_cuda CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/gpu/cuda/*.cu ${CMAKE_SOURCE_DIR}/gpu/cuda/*.c)
    add_library(gradcheck-cuda MODULE ${kernels} ${only_cuda} ${CMAKE_SOURCE_DIR}/gpu/kernels/table.cpp
      ${CMAKE_SOURCE_DIR}/core/status.c)
    target_link_libraries(gradcheck-cuda PRIVATE gck_flags CUDA::cudart_static CUDA::cublas)
    target_compile_options(gradcheck-cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:${GCK_CUDA_FLAGS}>)
    set_target_properties(gradcheck-cuda PROPERTIES CUDA_RUNTIME_LIBRARY Static)
    gck_kernel_library(gradcheck-cuda)
  endif()
endfunction()
