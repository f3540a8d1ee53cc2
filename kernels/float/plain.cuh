// Convolution of pixels in global memory, sample by sample: for any number of channels.
//
// A thread has one sample in OUTPUTS rows. It works on samples, not on pixels: neighbours in a row are
// CHANNELS samples apart, and a warp's loads stay adjacent whatever is interleaved.
#pragma once

#include "float/plane.cuh"

// The number to convolve of component `c` at (x, y), which may lie outside the plane.
template <class Stored>
__device__ __forceinline__ float read_anywhere(const FloatPlane &plane, i32 x, i32 y, i32 c)
{
    x = border_index(x, plane.width);
    y = border_index(y, plane.height);
    if (BORDER_IS_CONSTANT && (x < 0 || y < 0)) {
        return channel_of(plane, c).border;
    }
    return number_at<Stored>(plane, x, y, c);
}

// Multiply-adds up to which a thread's work is unrolled completely.
constexpr i32 UNROLLED = 512;

// Correlates one plane with W x H masks and hands the sums, which begin with `start(c)`, to
// `finish(sample, c, y, sums)`, which does not write to `plane.source`.
template <class Stored, i32 W, i32 H, class Weights, class Start, class Finish>
__device__ __forceinline__ void correlate_plainly(const FloatPlane &plane, const Weights &weights,
                                                  const Start &start, const Finish &finish)
{
    constexpr i32 RX = W / 2, RY = H / 2, ROWS = H + OUTPUTS - 1;
    constexpr bool IS_UNROLLED = W * ROWS * MASKS * OUTPUTS <= UNROLLED;
    constexpr i32 UNROLL_ROWS = IS_UNROLLED ? ROWS : 1, UNROLL_COLUMNS = IS_UNROLLED || W <= 4 ? W : 4;

    const i32 sample = (i32)blockIdx.x * BLOCK_W + (i32)threadIdx.x;
    if (sample >= plane.width * CHANNELS) {
        return;
    }
    const i32 x = sample / CHANNELS, c = sample % CHANNELS;
    // The rows of blocks are a loop, since a grid's y may not exceed 65535.
    for (i64 first = (i64)blockIdx.y * BLOCK_H * OUTPUTS; first < plane.height;
         first += (i64)gridDim.y * BLOCK_H * OUTPUTS) {
        const i32 y = (i32)first + (i32)threadIdx.y * OUTPUTS;
        if (y >= plane.height) {
            continue;
        }
        float sums[OUTPUTS][MASKS];
#pragma unroll
        for (i32 o = 0; o < OUTPUTS; ++o) {
#pragma unroll
            for (i32 m = 0; m < MASKS; ++m) {
                sums[o][m] = start(c);
            }
        }
        const bool inside =
            x >= RX && x < plane.width - RX && y >= RY && y + OUTPUTS - 1 < plane.height - RY;
        if (is_convolved(c) && inside) {
#pragma unroll UNROLL_ROWS
            for (i32 j = 0; j < ROWS; ++j) {
#pragma unroll UNROLL_COLUMNS
                for (i32 i = 0; i < W; ++i) {
                    const float value = number_at<Stored>(plane, x + i - RX, y + j - RY, c);
#pragma unroll
                    for (i32 o = 0; o < OUTPUTS; ++o) {
                        if (j >= o && j - o < H) {
#pragma unroll
                            for (i32 m = 0; m < MASKS; ++m) {
                                sums[o][m] =
                                    __fmaf_rn(weights[(m * H + j - o) * W + i], value, sums[o][m]);
                            }
                        }
                    }
                }
            }
        } else if (is_convolved(c)) {
            // Few pixels take this path, so small code is better than fast code.
#pragma unroll
            for (i32 o = 0; o < OUTPUTS; ++o) {
#pragma unroll 1
                for (i32 k = 0; k < W * H; ++k) {
                    const float value =
                        read_anywhere<Stored>(plane, x + k % W - RX, y + o + k / W - RY, c);
#pragma unroll
                    for (i32 m = 0; m < MASKS; ++m) {
                        sums[o][m] = __fmaf_rn(weights[m * W * H + k], value, sums[o][m]);
                    }
                }
            }
        }
#pragma unroll
        for (i32 o = 0; o < OUTPUTS; ++o) {
            if (y + o < plane.height) {
                finish(sample, c, y + o, sums[o]);
            }
        }
    }
}
