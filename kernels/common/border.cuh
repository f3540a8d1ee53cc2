// What lies beyond a plane's edges. src/filter/border.rs has the pictures.
//
// Compile-time parameter: BORDER, the number of one of these.
#pragma once

#include "common/plane.cuh"

// Where position `at` of a line of `n` pixels is found inside it; -1 where the border holds a constant. NEAR: it is beyond by less than `n`.
template <bool NEAR = false> __device__ __forceinline__ i32 border_index(i32 at, i32 n)
{
    if ((unsigned)at < (unsigned)n) {
        return at;
    }
#if BORDER == 0
    return at < 0 ? 0 : n - 1;
#elif BORDER == 1
    return -1;
#else
    // Less than a length beyond, as nearly always, no division is needed.
    const i32 beyond = at < 0 ? -1 - at : at - n;
    const i32 inside = BORDER == 4 ? (at < 0 ? n - 1 - beyond : beyond) : at < 0 ? beyond + (BORDER == 3) : n - 1 - beyond - (BORDER == 3);
    if (NEAR || (unsigned)inside < (unsigned)n) {
        return inside;
    }
    // 64 bits, since twice the length may not fit 32.
    const i64 period = BORDER == 2 ? 2 * (i64)n : BORDER == 3 ? 2 * (i64)n - 2 : (i64)n;
    if (period == 0) {
        return 0;
    }
    i64 m = at % period;
    m += m < 0 ? period : 0;
    if (BORDER == 2 && m >= n) {
        m = period - 1 - m;
    }
    if (BORDER == 3 && m >= n) {
        m = period - m;
    }
    return (i32)m;
#endif
}
