/* The cuda device: gpu/cuda/device.c, plain C over the CUDA runtime.
 *
 * It belongs into the shared library of the built-in CUDA kernels, lib/gradcheck/gradcheck-cuda.so, beside
 * gck_kernels(), never into the program: that runs where there is no CUDA, and gck_devices() tells why there is none.
 * How it is built is in cmake/GradcheckKernels.cmake: gpu/cuda/ and core/status.c as sources, CUDA::cudart_static to
 * link.
 *
 * core/status.c comes along as a source because the library must stand alone: no gck_core, no jansson, no xxHash.
 * A user's own library brings its own static CUDA runtime; both share the primary context of device 0. */
#ifndef GCK_GPU_CUDA_DEVICE_H
#define GCK_GPU_CUDA_DEVICE_H

#include "gpu/device.h"

GCK_EXPORT const gck_device *gck_cuda_device(void);

#endif
