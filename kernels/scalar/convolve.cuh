// What the scalar kernels share: loads, the tile, the sums, the store.
//
// Compile-time parameters (given by src/engine/cuda/kernels/scalar.rs):
//   PIXELS            where a thread reads pixels, as in common/enums.cuh
//   CONSTANT_WEIGHTS  1: the weights lie in constant memory, 0: in global memory, read through the read-only
//                     path
//   SAMPLE_BYTES      1 or 2; SAMPLE_SHIFT: unused low bits of a stored sample
//   WIDE              1: sums take 64 bits and the intermediate 32, 0: 32 and 16
//   DIVIDES           1: sums, which are below 2^31, are divided by a multiplication; 0: by a shift
//   CHANNELS          samples that one pixel interleaves; CONVOLVED: a bit for each that is convolved
//   BORDER            as in common/border.cuh
//   MASK_W, MASK_H    columns and rows of the mask
//   BLOCK_W, BLOCK_H  threads of a block; OUTPUTS: rows that one thread computes, 1 unless PIXELS is
//                     TILE_PIXELS
//
// A thread works on samples, not on pixels: neighbours in a row are CHANNELS samples apart, and a warp's
// loads stay adjacent whatever is interleaved.
#pragma once

#include "common/border.cuh"
#include "common/enums.cuh"
#include "common/plane.cuh"

#if WIDE
typedef i64 Sum;
typedef i32 Intermediate;
#else
typedef i32 Sum;
typedef i16 Intermediate;
#endif

// Unused low bits of a pass's stored source values: SAMPLE_SHIFT of samples, none of the intermediate.
template <class Stored> struct Shift {
    static constexpr i32 bits = 0;
};
#if SAMPLE_SHIFT
template <> struct Shift<Sample> {
    static constexpr i32 bits = SAMPLE_SHIFT;
};
#endif

template <class Stored> __device__ __forceinline__ i32 read_global(const Plane &plane, i32 sample, i32 y)
{
    const Stored *row = (const Stored *)(plane.source + (i64)y * plane.source_pitch);
    return (i32)__ldg(row + sample) >> Shift<Stored>::bits;
}

template <class Stored> __device__ __forceinline__ i32 read_texture(const Plane &plane, i32 sample, i32 y)
{
    // Point sampling at a texel's centre; the texture clamps what lies outside.
    return (i32)tex2D<Stored>(plane.texture, (float)sample + 0.5f, (float)y + 0.5f) >> Shift<Stored>::bits;
}

template <class Stored> __device__ __forceinline__ i32 read_pixels(const Plane &plane, i32 sample, i32 y)
{
#if PIXELS == TEXTURE_PIXELS
    return read_texture<Stored>(plane, sample, y);
#else
    return read_global<Stored>(plane, sample, y);
#endif
}

// The value of component `c` at (x, y), which may lie outside the plane.
template <class Stored> __device__ __forceinline__ i32 read_anywhere(const Plane &plane, i32 x, i32 y, i32 c)
{
    if constexpr (PIXELS == TEXTURE_PIXELS && BORDER == REPLICATE) {
        // The hardware's clamp is the replicated border, except across interleaved samples, where it would
        // take another component's.
        const i32 inside = CHANNELS == 1 ? x : border_index(x, plane.width);
        return read_texture<Stored>(plane, inside * CHANNELS + c, y);
    } else {
        x = border_index(x, plane.width);
        y = border_index(y, plane.height);
        if (BORDER_IS_CONSTANT && (x < 0 || y < 0)) {
            return plane.channel[c].border;
        }
        return read_pixels<Stored>(plane, x * CHANNELS + c, y);
    }
}

// Multiply-adds up to which a thread's work is unrolled completely. Beyond it code outgrows the instruction
// cache, and NVRTC takes seconds.
constexpr i32 UNROLLED = 512;

// One mask's weights: `add` adds a value's product to the sum.
template <class Weights> struct OneMask {
    typedef Sum Total;
    Weights weights;

    __device__ __forceinline__ void add(Sum &sum, i32 k, i32 value) const
    {
        sum += (Sum)weights[k] * value;
    }
};

// Adds one value's product to the sum of each output whose mask covers it. `i` and `j` are the value's column
// and row under the mask of the first output.
template <i32 W, i32 H, class Weights>
__device__ __forceinline__ void add_value(typename Weights::Total (&sums)[OUTPUTS], i32 i, i32 j, i32 value,
                                          const Weights &weights)
{
#pragma unroll
    for (i32 o = 0; o < OUTPUTS; ++o) {
        if (j >= o && j - o < H) {
            weights.add(sums[o], (j - o) * W + i, value);
        }
    }
}

// Sums weights times values. fetch(i, j): the value under column i of the mask, j rows below the row that the
// mask's first row covers for this thread's first output.
template <i32 W, i32 H, class Weights, class Fetch>
__device__ __forceinline__ void accumulate(typename Weights::Total (&sums)[OUTPUTS], const Weights &weights,
                                           const Fetch &fetch)
{
    constexpr i32 ROWS = H + OUTPUTS - 1;
    if constexpr (W * H * OUTPUTS <= UNROLLED) {
        // All indices are known to the compiler: the weights become operands, and the conditions vanish.
#pragma unroll
        for (i32 j = 0; j < ROWS; ++j) {
#pragma unroll
            for (i32 i = 0; i < W; ++i) {
                add_value<W, H>(sums, i, j, fetch(i, j), weights);
            }
        }
    } else if constexpr (OUTPUTS > 1) {
        // A loop over the columns of the mask, down which everything is unrolled: each weight and each value
        // is read once a column, and used for all outputs from a register. A loop over the rows would read
        // each weight once for each output.
#pragma unroll 1
        for (i32 i = 0; i < W; ++i) {
#pragma unroll
            for (i32 j = 0; j < ROWS; ++j) {
                add_value<W, H>(sums, i, j, fetch(i, j), weights);
            }
        }
    } else {
        // A loop over the rows of the mask.
        constexpr i32 UNROLL = W <= 32 ? W : 16;
#pragma unroll 1
        for (i32 j = 0; j < H; ++j) {
#pragma unroll UNROLL
            for (i32 i = 0; i < W; ++i) {
                weights.add(sums[0], j * W + i, fetch(i, j));
            }
        }
    }
}

// Correlates one plane with a W x H mask of weights and hands each sum to `store(sample, c, y, sum)`. The
// type of a sum, one number or one for each mask, is the weights' `Total`.
//
// A launch never reads what it writes: `store` does not write to `plane.source`, so no block depends on
// another.
template <class Stored, i32 W, i32 H, class Weights, class Store>
__device__ __forceinline__ void correlate(const Plane &plane, const Weights &weights, const Store &store)
{
    constexpr i32 RX = W / 2, RY = H / 2;
    constexpr i32 ROWS = BLOCK_H * OUTPUTS;

    const i32 samples = plane.width * CHANNELS;
    const i32 sample = (i32)blockIdx.x * BLOCK_W + (i32)threadIdx.x;
    const i32 c = sample % CHANNELS;
    // The grid fits the largest plane of the launch.
    if ((i32)blockIdx.x * BLOCK_W >= samples) {
        return;
    }

    // The rows of tiles are a loop, since a grid's y may not exceed 65535.
    for (i64 first = (i64)blockIdx.y * ROWS; first < plane.height; first += (i64)gridDim.y * ROWS) {
        const i32 y = (i32)first + (i32)threadIdx.y * OUTPUTS;
        typename Weights::Total sums[OUTPUTS] = {};

#if PIXELS == TILE_PIXELS
        constexpr i32 TILE_W = BLOCK_W + (W - 1) * CHANNELS;
        constexpr i32 TILE_H = ROWS + H - 1;
        constexpr i32 THREADS = BLOCK_W * BLOCK_H;
        extern __shared__ __align__(16) u8 shared_bytes[];
        Stored *tile = (Stored *)shared_bytes;
        // One strided loop loads the tile and all of its halo, for any shape of block and mask. The border is
        // applied here, so that the sums below need not handle it.
        const i32 left = (i32)blockIdx.x * BLOCK_W;
        const i32 corner_sample = left - RX * CHANNELS;
        const i64 corner_row = first - RY;
        const bool within = corner_sample >= 0 && corner_sample + TILE_W <= samples && corner_row >= 0 &&
                            corner_row + TILE_H <= plane.height;
        for (i32 k = threadIdx.y * BLOCK_W + threadIdx.x; k < TILE_W * TILE_H; k += THREADS) {
            const i32 tx = k % TILE_W, ty = k / TILE_W;
            const i32 at = left + tx;
            // `within` is uniform in the block: most tiles lie within the frame and need no border.
            tile[k] = (Stored)(within ? read_pixels<Stored>(plane, corner_sample + tx, (i32)corner_row + ty)
                                      : read_anywhere<Stored>(plane, at / CHANNELS - RX, (i32)corner_row + ty,
                                                              at % CHANNELS));
        }
        // No thread reads the tile before all of it is there...
        __syncthreads();
        const Stored *mine = tile + threadIdx.y * OUTPUTS * TILE_W + threadIdx.x;
        if (is_convolved(c)) {
            accumulate<W, H>(sums, weights,
                             [&](i32 i, i32 j) -> i32 { return mine[j * TILE_W + i * CHANNELS]; });
        }
        // ...and none overwrites it before all have read it.
        __syncthreads();
        if (sample >= samples) {
            continue;
        }
#else
        if (sample >= samples || y >= plane.height) {
            continue;
        }
        if (is_convolved(c)) {
            const i32 x = sample / CHANNELS;
            const bool inside = x >= RX && x < plane.width - RX && y >= RY && y < plane.height - RY;
            if (inside) {
                accumulate<W, H>(sums, weights, [&](i32 i, i32 j) -> i32 {
                    return read_pixels<Stored>(plane, sample + (i - RX) * CHANNELS, y + j - RY);
                });
            } else {
                // Few pixels take this path, so small code is better than fast code.
#pragma unroll 1
                for (i32 j = 0; j < H; ++j) {
#pragma unroll 1
                    for (i32 i = 0; i < W; ++i) {
                        weights.add(sums[0], j * W + i,
                                    read_anywhere<Stored>(plane, x + i - RX, y + j - RY, c));
                    }
                }
            }
        }
#endif
#pragma unroll
        for (i32 o = 0; o < OUTPUTS; ++o) {
            if (OUTPUTS == 1 && PIXELS != TILE_PIXELS) {
                store(sample, c, y, sums[0]);
            } else if (y + o < plane.height) {
                store(sample, c, y + o, sums[o]);
            }
        }
    }
}

// Divides a sum, adds the bias, saturates and writes the sample. Components that are not convolved are copied
// or filled.
__device__ __forceinline__ void store_sample(const Planes &planes, const Plane &plane, i32 sample, i32 c,
                                             i32 y, Sum sum)
{
    Sample *out = (Sample *)(plane.result + (i64)y * plane.result_pitch) + sample;
    const Channel &channel = plane.channel[CHANNELS == 1 ? 0 : c];
    if (!is_convolved(c)) {
        const Sample *kept = (const Sample *)(plane.original + (i64)y * plane.original_pitch) + sample;
        *out = channel.fill < 0 ? *kept : (Sample)(channel.fill << SAMPLE_SHIFT);
        return;
    }
    const Sum high = (Sum)channel.high;
    const Sum most = planes.max_value - high;
    Sum value = sum + (Sum)channel.low;
#if DIVIDES
    value = quotient((i32)value, planes.factor, planes.shift);
#else
    value >>= planes.shift;
#endif
    // Clamping before the bias is added cannot overflow; the host keeps `high` within 2^30 for 32-bit sums.
    value = value < -high ? -high : value;
    value = value > most ? most : value;
    *out = (Sample)((value + high) << SAMPLE_SHIFT);
}
