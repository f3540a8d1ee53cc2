// The operands that lanes load for byte-matrix products, and the sums of those products.
#pragma once

#include "tensor/tile/geometry.cuh"

// Selects one of two vectors of four words; which one is known at compile time.
__device__ __forceinline__ const i32 (&select_ref(bool first, const i32 (&a)[4], const i32 (&b)[4]))[4]
{
    return first ? a : b;
}

// Reads a vector of four equal words from memory: the compiler would otherwise set four registers for each
// use.
__device__ __forceinline__ void read_four(i32 (&to)[4], const volatile i32 (&from)[4])
{
#pragma unroll
    for (i32 k = 0; k < 4; ++k) {
        to[k] = from[k];
    }
}

// Reads N words that are GAP bytes apart, the first `offset` bytes into the tile's row. REMAINDER: in an
// aligned launch, the offset modulo 4.
template <bool ALIGNED, i32 N, i32 GAP, i32 REMAINDER>
__device__ __forceinline__ void read_words(u32 (&out)[N], const u8 *row, i32 offset)
{
    static_assert(GAP % 2 == 0, "words begin at a multiple of two bytes from one another");
    // The words lie so close that reading all bytes between them takes hardly more loads.
    constexpr bool SHARED = (N - 1) * GAP + 4 <= 8 + 4 * N;
    if constexpr (SHARED) {
        // Bytes from the first word's start to the last one's end.
        constexpr i32 SPAN = (N - 1) * GAP + 4;
        if constexpr (ALIGNED) {
            constexpr i32 READ = (SPAN + REMAINDER + 3) / 4;
            u32 w[READ];
#pragma unroll
            for (i32 k = 0; k < READ; ++k) {
                w[k] = word(row + offset - REMAINDER + 4 * k);
            }
#pragma unroll
            for (i32 k = 0; k < N; ++k) {
                const i32 at = REMAINDER + GAP * k;
                out[k] = at % 4 == 0 ? w[at / 4]
                                     : __funnelshift_r(w[at / 4], w[at / 4 + (at % 4 != 0)], 8 * (at % 4));
            }
        } else {
            constexpr i32 WORDS = (SPAN + 3) / 4;
            offset += misalignment_of(row);
            const u8 *p = row + (offset & ~3);
            const i32 shift = 8 * (offset & 3);
            u32 w[WORDS + 1];
#pragma unroll
            for (i32 k = 0; k <= WORDS; ++k) {
                w[k] = word(p + 4 * k);
            }
#pragma unroll
            for (i32 k = 0; k < WORDS; ++k) {
                w[k] = __funnelshift_r(w[k], w[k + 1], shift);
            }
#pragma unroll
            for (i32 k = 0; k < N; ++k) {
                const i32 at = GAP * k;
                out[k] = at % 4 == 0 ? w[at / 4] : __funnelshift_r(w[at / 4], w[at / 4 + 1], 16);
            }
        }
    } else {
        i32 shift = 8 * REMAINDER;
        const u8 *p = row + offset - REMAINDER;
        if (!ALIGNED) {
            offset += misalignment_of(row);
            p = row + (offset & ~3);
            shift = 8 * (offset & 3);
        }
#pragma unroll
        for (i32 k = 0; k < N; ++k) {
            out[k] = word(p + GAP * k);
            if (!ALIGNED || REMAINDER != 0) {
                out[k] = __funnelshift_r(out[k], word(p + GAP * k + 4), shift);
            }
        }
    }
    if constexpr (DIGITS == 1) {
        drop_unused_bits(out);
    }
}

#if WIDE
typedef i64 Total;
#else
typedef i32 Total;
#endif

// Joins the sums of byte products to one sum: base 256, highest first.
template <class Sum, i32 N> __device__ __forceinline__ Sum joined(const i32 (&bands)[N])
{
    Sum sum = bands[0];
#pragma unroll
    for (i32 i = 1; i < N; ++i) {
        sum = sum * 256 + bands[i];
    }
    return sum;
}

// Joins the sums of two products, each in N parts, to eight values: those of the lane's first row of each
// product's D, then those of its second row. join(parts, k) makes value k.
template <i32 N, class Join>
__device__ __forceinline__ void join_sums(i32 (&values)[8], const i32 (&sums)[2][N][4], const Join &join)
{
#pragma unroll
    for (i32 k = 0; k < 8; ++k) {
        i32 parts[N];
#pragma unroll
        for (i32 i = 0; i < N; ++i) {
            parts[i] = sums[k / 2 % 2][i][k / 4 * 2 + k % 2];
        }
        values[k] = join(parts, k);
    }
}
