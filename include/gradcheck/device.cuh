/* For kernels in a .cu file that should also run without a GPU: CUDA's own headers under nvcc, gradcheck's SIMT
 * executor under a C++ compiler. docs/bring-your-own-kernel.md shows a kernel that uses it. */
#ifndef GRADCHECK_DEVICE_CUH
#define GRADCHECK_DEVICE_CUH

#include "gpu/kernels/device.cuh"

#endif
