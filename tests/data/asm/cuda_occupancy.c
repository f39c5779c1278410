// Prints NVIDIA's own answers to occupancy questions, with the header-only calculator of the CUDA toolkit.
// pip download --no-deps nvidia-cuda-runtime-cu12==12.9.79 && unzip -o nvidia_cuda_runtime_cu12-*.whl -d runtime
// cc -I runtime/nvidia/cuda_runtime/include cuda_occupancy.c -o cuda_occupancy && ./cuda_occupancy > cuda_occupancy.txt
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cuda_occupancy.h"

// Compute capability, and what cudaGetDeviceProperties says of a part of it.
static const struct {
  int arch, threads, shared_kib, optin_kib, reserved;
} parts[] = {
    {75, 1024, 64, 64, 0},       {80, 2048, 164, 163, 1024},  {86, 1536, 100, 99, 1024},  {87, 1536, 164, 163, 1024},
    {89, 1536, 100, 99, 1024},   {90, 2048, 228, 227, 1024},  {100, 2048, 228, 227, 1024}, {103, 2048, 228, 227, 1024},
    {120, 1536, 100, 99, 1024},
};

// Registers a thread, warps a block, shared bytes a block, named barriers a block.
static const int kernels[][4] = {
    {32, 4, 0, 1},      {40, 4, 16384, 1},   {96, 4, 49152, 1},   {128, 8, 65536, 1}, {168, 4, 24576, 2},
    {255, 4, 0, 1},     {255, 8, 98304, 1},  {256, 8, 0, 1},      {64, 1, 0, 0},      {24, 1, 1000, 1},
    {33, 2, 128, 1},    {65, 16, 33000, 1},  {72, 3, 0, 3},       {168, 12, 230000, 4}, {16, 32, 0, 1},
    {64, 32, 100000, 1}, {65, 32, 0, 1},     {90, 5, 12345, 1},   {128, 4, 232448, 1}, {128, 4, 101376, 1},
    {20, 2, 3072, 8},   {48, 6, 7000, 1},    {80, 9, 0, 16},      {232, 8, 166912, 1},
};

int main(void) {
  printf("# cc -I runtime/nvidia/cuda_runtime/include cuda_occupancy.c -o cuda_occupancy && ./cuda_occupancy; CUDA 12.9\n");
  printf("# arch registers warps shared barriers: blocks by_registers by_shared by_warps by_blocks by_barriers\n");
  for (unsigned p = 0; p < sizeof parts / sizeof *parts; ++p) {
    cudaOccDeviceProp device;
    memset(&device, 0, sizeof device);
    device.computeMajor = parts[p].arch / 10;
    device.computeMinor = parts[p].arch % 10;
    device.maxThreadsPerBlock = 1024;
    device.maxThreadsPerMultiprocessor = parts[p].threads;
    device.regsPerBlock = device.regsPerMultiprocessor = 65536;
    device.warpSize = 32;
    device.sharedMemPerBlock = 49152;
    device.sharedMemPerMultiprocessor = (size_t)parts[p].shared_kib * 1024;
    device.sharedMemPerBlockOptin = (size_t)parts[p].optin_kib * 1024;
    device.reservedSharedMemPerBlock = parts[p].reserved;
    device.numSms = 1;
    for (unsigned k = 0; k < sizeof kernels / sizeof *kernels; ++k) {
      cudaOccFuncAttributes function;
      cudaOccDeviceState state;
      cudaOccResult result;
      memset(&function, 0, sizeof function);
      memset(&state, 0, sizeof state);
      state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
      function.maxThreadsPerBlock = INT_MAX;
      function.numRegs = kernels[k][0];
      function.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
      function.maxDynamicSharedSizeBytes = kernels[k][2];
      function.numBlockBarriers = kernels[k][3];
      cudaOccError error = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &function, &state,
                                                                   kernels[k][1] * 32, kernels[k][2]);
      if (error != CUDA_OCC_SUCCESS) {
        fprintf(stderr, "%d: error %d for %d\n", parts[p].arch, error, k);
        continue;
      }
      printf("%d %d %d %d %d: %d %d %d %d %d %d\n", parts[p].arch, kernels[k][0], kernels[k][1], kernels[k][2],
             kernels[k][3], result.activeBlocksPerMultiprocessor, result.blockLimitRegs, result.blockLimitSharedMem,
             result.blockLimitWarps, result.blockLimitBlocks, result.blockLimitBarriers);
    }
  }
  return 0;
}
