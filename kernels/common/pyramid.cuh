// The grids of a pyramid (src/filter/plan/pyramid.rs), for any kind of sample.
//
//   samples             W x H
//      | decimate_rows            every STEP-th row              W x (h + 2 RADIUS)
//      | decimate_columns         every STEP-th column           (w + 2 RADIUS) x (h + 2 RADIUS)
//      | filter_rows              the low filter along rows      w x (h + 2 RADIUS)
//      | filter_columns           and along columns              w x h
//      | interpolate_columns      all columns                    W x h
//      | interpolate_rows         all rows, samples again        W x H
//
// w x h are the low pixels that results are interpolated from: each result from the low pixel at or before
// it, the two before that and the three behind it. Each filter is a launch of its own, since it reads what
// other blocks of the launch before have written. Numbers between launches take 32 bits.
//
// Compile-time parameters, beside CHANNELS, BLOCK_W and BLOCK_H:
//   STEP, RADIUS   pixels from a low pixel to the next, low pixels on each side that the low filter reads
#pragma once

#include "common/platform/types.cuh"

// Low pixels that a pixel is interpolated from.
constexpr i32 TAPS = 6;
// Pixels that a low pixel is decimated from.
constexpr i32 WINDOW = TAPS * STEP;
// The first low pixel that results are interpolated from, and the first that the low filter reads for it.
constexpr i32 FIRST = -2;
constexpr i32 BEFORE = FIRST - RADIUS;

// Low pixels that a side of `n` pixels is interpolated from, and those that the low filter reads.
__device__ __forceinline__ i32 low_pixels(i32 n)
{
    return (n - 1) / STEP + TAPS;
}
__device__ __forceinline__ i32 decimated(i32 n)
{
    return low_pixels(n) + 2 * RADIUS;
}

// A row of the numbers that the launch before has written.
template <class Number, class Plane>
__device__ __forceinline__ const Number *numbers(const Plane &plane, i32 row)
{
    return (const Number *)(plane.source + (i64)row * plane.source_pitch);
}

// Calls make(x, c, row) for each component of `pixels` pixels in `rows` rows; a thread takes one column of
// components.
template <class Make> __device__ __forceinline__ void each(i32 pixels, i32 rows, const Make &make)
{
    const i32 at = (i32)blockIdx.x * BLOCK_W + (i32)threadIdx.x;
    if (at >= pixels * CHANNELS) {
        return;
    }
    // The rows are a loop, since a grid's y may not exceed 65535.
    for (i64 row = (i64)blockIdx.y * BLOCK_H + threadIdx.y; row < rows; row += (i64)gridDim.y * BLOCK_H) {
        make(at / CHANNELS, at % CHANNELS, (i32)row);
    }
}

// The same; each value that make(x, c, row) returns is stored as a number of the result.
template <class Number, class Plane, class Make>
__device__ __forceinline__ void each_number(const Plane &plane, i32 pixels, i32 rows, const Make &make)
{
    each(pixels, rows, [&](i32 x, i32 c, i32 row) {
        Number *out = (Number *)(plane.result + (i64)row * plane.result_pitch);
        out[x * CHANNELS + c] = make(x, c, row);
    });
}
