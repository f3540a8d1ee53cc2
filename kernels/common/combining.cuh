// What one number is made of: the sums of one or several masks.
//
// Compile-time parameters, beside those of common/plane.cuh:
//   COMBINING        as below
//   MASKS            masks of MASK_W x MASK_H
// and for magnitudes
//   SCALE_N, SCALE_D what a root is multiplied by, as a fraction
//   MOST             the largest number that matters; what is larger may become any that is not below it
//   MOST_SQUARES     the least sum of squares that gives it
//   MOST_SUM         no sum is further from 0
#pragma once

#include "common/plane.cuh"
#include "common/ptx.cuh"

enum Combining {
    ABSOLUTE = 0,
    LARGEST = 1,
    MAGNITUDE = 2,
    LINEAR = 3,  // the sum itself
};

// True if n/d sqrt(squares) is at least number - 1/2: (2 number - 1)^2 d^2 <= 4 n^2 squares. `squares` is at
// most MOST_SQUARES, so that both sides fit 64 bits.
__device__ __forceinline__ bool reaches(u64 squares, i32 number)
{
    const u64 edge = (u64)(2 * number - 1) * SCALE_D;
    return number <= 0 || edge * edge <= 4 * (u64)SCALE_N * SCALE_N * squares;
}

// n/d sqrt(squares) to the nearest whole number; off by one in results of up to 17 bits at most.
__device__ __forceinline__ i32 near_root(float squares)
{
    // What is added leaves no bits for a fraction.
    const float near = fmaf(approximate_root(squares), (float)SCALE_N / (float)SCALE_D, 8388608.0f);
    return __float_as_int(near) - 0x4b000000;
}

// n/d sqrt(a^2 + b^2), rounded half up.
__device__ __forceinline__ i32 scaled_root(i32 a, i32 b)
{
    constexpr double n = SCALE_N, d = SCALE_D, sum = MOST_SUM, most = MOST;
    constexpr double limit = 2147483648.0;
    if constexpr (16 * (most + 2) * d * d < limit) {
        // Modulo 2^32.
        const u32 squares = (u32)a * (u32)a + (u32)b * (u32)b;
        float size;
        if constexpr (2 * sum * sum < limit) {
            size = (float)(i32)squares;
        } else {
            size = fmaf((float)a, (float)a, (float)b * (float)b);
        }
        const i32 near = near_root(size);
        if constexpr (n == 1 && d == 1 && most < 512) {
            // Roots of whole numbers are at least 1/4096 from where results change, and this is far nearer.
            return near;
        } else {
            // (2 near - 1)^2 d^2 <= 4 n^2 (a^2 + b^2) < (2 near + 1)^2 d^2, less what all sides have in
            // common: that fits 32 bits where `near` is off by one at most.
            const u32 root = (u32)near, square = (u32)SCALE_D * SCALE_D;
            const u32 exact = 4 * (u32)SCALE_N * (u32)SCALE_N * squares;
            const i32 rest = (i32)(exact - (4 * root * root + 1) * square);
            const i32 edge = (i32)(4 * root * square);
            return near + (i32)(rest >= edge) - (i32)(near > 0 && rest < -edge);
        }
    } else {
        u64 squares = (u64)((i64)a * a) + (u64)((i64)b * b);
        squares = squares < MOST_SQUARES ? squares : MOST_SQUARES;
        const i32 near = near_root((float)squares);
        return near + (i32)reaches(squares, near + 1) - (i32)!reaches(squares, near);
    }
}
