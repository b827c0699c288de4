/* The cuda device: gpu/cuda/device.c, plain C over the CUDA runtime.
 *
 * How it is built: it belongs into the shared library of the built-in CUDA kernels, lib/gradcheck/gradcheck-cuda.so,
 * beside gck_kernels(), never into the program. In cmake/GradcheckKernels.cmake:
 *
 *   target_sources(gradcheck-cuda PRIVATE ${CMAKE_SOURCE_DIR}/gpu/cuda/device.c ${CMAKE_SOURCE_DIR}/core/status.c)
 *   target_link_libraries(gradcheck-cuda PRIVATE gck_flags CUDA::cudart_static)
 *   set_target_properties(gradcheck-cuda PROPERTIES CUDA_RUNTIME_LIBRARY Static)
 *
 * core/status.c comes along as a source because the library must stand alone: no gck_core, no jansson, no xxHash.
 * A user's own library brings its own static CUDA runtime; both share the primary context of device 0. */
#ifndef GCK_GPU_CUDA_DEVICE_H
#define GCK_GPU_CUDA_DEVICE_H

#include "gpu/device.h"

GCK_EXPORT const gck_device *gck_cuda_device(void);

#endif
