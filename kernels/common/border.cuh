// Where pixels outside a plane come from. src/filter/border.rs has the pictures.
//
// Compile-time parameter: BORDER, one of these numbers.
#pragma once

#include "common/platform/types.cuh"

// The same numbers are in src/engine/cuda/kernels/plane_group.rs; a test there compares them.
enum BorderMode {
    REPLICATE = 0,
    CONSTANT = 1,  // zero too
    REFLECT = 2,
    MIRROR = 3,
    WRAP = 4,
};
static_assert(BORDER >= REPLICATE && BORDER <= WRAP, "BORDER is the number of a border");

// The border has no source pixel.
constexpr bool BORDER_IS_CONSTANT = BORDER == CONSTANT;
// `border_index` needs no division, however far outside the position is.
constexpr bool BORDER_NEEDS_NO_DIVISION = BORDER == REPLICATE || BORDER == CONSTANT;
// Pixels beyond an edge are those of the other side, so that a filtered picture continues as
// the picture did.
constexpr bool BORDER_IS_PERIODIC = BORDER == WRAP;

// The index of the pixel that stands for position `at` of a line of `n` pixels; -1 if the border is a
// constant. NEAR: `at` is at most `n` pixels outside, and less for MIRROR.
template <bool NEAR = false> __device__ __forceinline__ i32 border_index(i32 at, i32 n)
{
    if ((unsigned)at < (unsigned)n) {
        return at;
    }
    if constexpr (BORDER == REPLICATE) {
        return at < 0 ? 0 : n - 1;
    } else if constexpr (BORDER_IS_CONSTANT) {
        return -1;
    } else {
        // Positions are hardly ever more than `n` pixels outside; nearer ones need no division.
        const i32 outside = at < 0 ? -1 - at : at - n;
        const i32 inside = BORDER == WRAP ? (at < 0 ? n - 1 - outside : outside)
                           : at < 0       ? outside + (BORDER == MIRROR)
                                          : n - 1 - outside - (BORDER == MIRROR);
        if (NEAR || (unsigned)inside < (unsigned)n) {
            return inside;
        }
        // 64 bits, since twice the length may not fit 32.
        const i64 period = BORDER == REFLECT ? 2 * (i64)n : BORDER == MIRROR ? 2 * (i64)n - 2 : (i64)n;
        if (period == 0) {
            return 0;
        }
        i64 m = at % period;
        m += m < 0 ? period : 0;
        if (BORDER == REFLECT && m >= n) {
            m = period - 1 - m;
        }
        if (BORDER == MIRROR && m >= n) {
            m = period - m;
        }
        return (i32)m;
    }
}
