// Kernels that measure a card's peak rates: plain copies and bare multiply-adds.

#include "common/platform/ptx.cuh"

// Words that a thread copies.
#define WORDS 4

// Copies `count` words of 16 bytes; neighbouring threads read neighbouring words. It reads before it waits
// for earlier launches, which must not write to `from`.
extern "C" __global__ void copy_words(const uint4 *__restrict__ from, uint4 *__restrict__ to, long long count)
{
    const long long first = (long long)blockIdx.x * WORDS * blockDim.x + threadIdx.x;
    uint4 words[WORDS];
    let_next_launch_begin();
#pragma unroll
    for (int k = 0; k < WORDS; ++k) {
        const long long at = first + k * blockDim.x;
        if (at < count) words[k] = from[at];
    }
    wait_for_earlier_launches();
#pragma unroll
    for (int k = 0; k < WORDS; ++k) {
        const long long at = first + k * blockDim.x;
        if (at < count) to[at] = words[k];
    }
}

// Independent chains of operations of a thread, so that CHAINS operations are in flight.
#define CHAINS 8

// `rounds` times CHAINS multiply-adds of 32-bit integers a thread.
extern "C" __global__ void multiply_adds(int *out, int rounds, int factor) {
    int sum[CHAINS];
    for (int c = 0; c < CHAINS; ++c) sum[c] = threadIdx.x + c;
    for (int i = 0; i < rounds; ++i) {
#pragma unroll
        for (int c = 0; c < CHAINS; ++c) sum[c] = sum[c] * factor + i;
    }
    int all = 0;
    for (int c = 0; c < CHAINS; ++c) all ^= sum[c];
    out[blockIdx.x * blockDim.x + threadIdx.x] = all;
}

// `rounds` times CHAINS dot products of four bytes each a thread.
extern "C" __global__ void dot_products(int *out, int rounds, int factor) {
#if __CUDA_ARCH__ >= 610
    int sum[CHAINS];
    for (int c = 0; c < CHAINS; ++c) sum[c] = threadIdx.x + c;
    for (int i = 0; i < rounds; ++i) {
#pragma unroll
        for (int c = 0; c < CHAINS; ++c) sum[c] = __dp4a(sum[c], factor, i);
    }
    int all = 0;
    for (int c = 0; c < CHAINS; ++c) all ^= sum[c];
    out[blockIdx.x * blockDim.x + threadIdx.x] = all;
#endif
}

// `rounds` times CHAINS products of a 16x32 by a 32x8 matrix of bytes a warp.
extern "C" __global__ void tensor_products(int *out, int rounds, int factor) {
#if __CUDA_ARCH__ >= 800
    const u32 left[4] = {threadIdx.x * 0x01010101u, threadIdx.x + 1u, factor + 2u, factor + 3u};
    const u32 right[2] = {factor + threadIdx.x, factor + 5u};
    int sum[CHAINS][4] = {};
    for (int i = 0; i < rounds; ++i) {
#pragma unroll
        for (int c = 0; c < CHAINS; ++c)
            multiply_weights_signed(sum[c], left[0], left[1], left[2], left[3], right[0], right[1], sum[c]);
    }
    int all = 0;
    for (int c = 0; c < CHAINS; ++c) all ^= sum[c][0] ^ sum[c][1] ^ sum[c][2] ^ sum[c][3];
    out[blockIdx.x * blockDim.x + threadIdx.x] = all;
#endif
}
