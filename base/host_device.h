// VERBATIM_HOST_DEVICE marks arithmetic that the CPU and a CUDA kernel share to the bit.
#pragma once

#ifdef __CUDACC__
#define VERBATIM_HOST_DEVICE __host__ __device__
#else
#define VERBATIM_HOST_DEVICE
#endif
