// Combines the sums of one or several masks to one number: the root of integer sums of squares.
//
// Compile-time parameters, beside those of common/plane.cuh:
//   COMBINING        as in common/enums.cuh
//   MASKS            masks of MASK_W x MASK_H
// and for magnitudes
//   SCALE_N, SCALE_D the factor of a root, as a fraction
//   MOST             results from here on need not be exact: they may become any number from MOST on
//   MOST_SQUARES     the least sum of squares that gives MOST
//   MOST_SUM         the largest magnitude of a sum
#pragma once

#include "common/enums.cuh"
#include "common/plane.cuh"
#include "common/platform/ptx.cuh"

// True if n/d sqrt(squares) is at least number - 1/2: (2 number - 1)^2 d^2 <= 4 n^2 squares. `squares` is at
// most MOST_SQUARES, so that both sides fit 64 bits.
__device__ __forceinline__ bool reaches(u64 squares, i32 number)
{
    const u64 edge = (u64)(2 * number - 1) * SCALE_D;
    return number <= 0 || edge * edge <= 4 * (u64)SCALE_N * SCALE_N * squares;
}

// factor sqrt(squares) to the nearest whole number; off by one in results of up to 17 bits at most.
__device__ __forceinline__ i32 near_root(float squares, float factor)
{
    // A float of 2^23 or more has no bits for a fraction, so that the addition rounds.
    return __float_as_int(fmaf(approximate_root(squares), factor, 8388608.0f)) - 0x4b000000;
}

// n/d sqrt(a^2 + b^2), rounded half up.
__device__ __forceinline__ i32 scaled_root(i32 a, i32 b)
{
    constexpr double n = SCALE_N, d = SCALE_D, sum = MOST_SUM, most = MOST;
    constexpr double limit = 2147483648.0;
    constexpr float factor = (float)SCALE_N / (float)SCALE_D;
    if constexpr (16 * (most + 2) * d * d < limit) {
        // Exact modulo 2^32.
        const u32 squares = (u32)a * (u32)a + (u32)b * (u32)b;
        float size;
        if constexpr (2 * sum * sum < limit) {
            size = (float)(i32)squares;
        } else {
            size = fmaf((float)a, (float)a, (float)b * (float)b);
        }
        if constexpr (n == 1 && d == 1 && most < 512) {
            // Roots of whole numbers are at least 1/4096 from where results change, and this is far nearer.
            return near_root(size, factor);
        } else {
            // Lowered by 8 x 2^-24 of it, where a root is off by 7 at most, so that it is one too small at
            // most: where (2 near + 1)^2 d^2 <= 4 n^2 (a^2 + b^2). Less 4 (near^2 + near) d^2 on each side,
            // and divided by 4, the differences fit 32 bits. A sign takes less than a comparison.
            const i32 near = near_root(size, factor * (1 - 1 / 2097152.0f));
            const u32 root = (u32)near, square = (u32)SCALE_D * SCALE_D;
            const u32 before = (root * root + root) * square + (square - 1) / 4;
            return near + (i32)((before - (u32)SCALE_N * (u32)SCALE_N * squares) >> 31);
        }
    } else {
        u64 squares = (u64)((i64)a * a) + (u64)((i64)b * b);
        squares = squares < MOST_SQUARES ? squares : MOST_SQUARES;
        const i32 near = near_root((float)squares, factor);
        return near + (i32)reaches(squares, near + 1) - (i32)!reaches(squares, near);
    }
}
