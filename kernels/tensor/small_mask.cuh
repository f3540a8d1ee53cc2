// Small masks on tensor cores, to 9x9 on planes of bytes: two products take the same K-slices, and each lane
// keeps all weights in registers.
//
// A K-slice is 16 bytes of one row and the 16 below them. K-slices are 8 bytes apart, and each gives 8 x 2
// results.
#pragma once

#include "tensor/tile/operand.cuh"

struct Weights {
    u32 low, high;
};

__device__ __forceinline__ Weights read_weights(const u32 *fragments, i32 index)
{
    const uint2 pair = __ldg((const uint2 *)fragments + index * 32 + threadIdx.x % 32);
    return Weights{pair.x, pair.y};
}

// The weights of ROW_PAIRS pairs of rows in PRODUCTS bands, for the two products that take a K-slice: [0]
// gives results 0, 1, 4, 5 of each row of an output tile, [1] results 2, 3, 6, 7.
template <i32 ROW_PAIRS, i32 PRODUCTS> struct SharedBands {
    Weights at[ROW_PAIRS][2][PRODUCTS];

    __device__ __forceinline__ void read(const u32 *fragments)
    {
#pragma unroll
        for (i32 j = 0; j < ROW_PAIRS; ++j) {
#pragma unroll
            for (i32 u = 0; u < 2; ++u) {
#pragma unroll
                for (i32 i = 0; i < PRODUCTS; ++i) {
                    at[j][u][i] = read_weights(fragments, (j * 2 + u) * PRODUCTS + i);
                }
            }
        }
    }
};

// Calls take(s, values) with this lane's results of each step s, in order. Steps are COUNT K-slices below
// each other, whose rows are ROW bytes apart. With t = lane % 4 the values are results 4 (t % 2) to 4 (t % 2)
// + 3 of two neighbouring K-slices, in the first row of results or, for t above 1, in the second. The lane
// reads from byte `offset` of `row` on, a multiple of four; join(parts, k) makes result k of the 16 out of
// its sums. IN_STEP: each step reads what the next one needs, before it writes, and nothing is read earlier.
// For kernels in which the compiler would otherwise hold too much in registers.
template <bool ALIGNED, bool IN_STEP, i32 ROW, i32 COUNT, i32 ROW_PAIRS, i32 PRODUCTS, class Join, class Take>
__device__ __forceinline__ void convolve_shared(const u8 *row, i32 offset, const i32 (&start)[4],
                                                const SharedBands<ROW_PAIRS, PRODUCTS> &bands,
                                                const Join &join, const Take &take)
{
    const i32 t = threadIdx.x % 4;
    const i32 zero[4] = {};
    // [k][r]: words of row r of pair k, of two K-slices that are 8 bytes apart.
    u32 slices[ROW_PAIRS + COUNT - 1][2][2];
    auto read_pair = [&](i32 k) {
#pragma unroll
        for (i32 r = 0; r < 2; ++r) {
            read_words<ALIGNED, 2, 8, 0>(slices[k][r], row + (2 * k + r) * ROW, offset);
        }
    };
#pragma unroll
    for (i32 k = 0; k < ROW_PAIRS - !IN_STEP; ++k) {
        read_pair(k);
    }
#pragma unroll
    for (i32 s = 0; s < COUNT; ++s) {
        if (!IN_STEP) {
            read_pair(s + ROW_PAIRS - 1);
        }
        i32 sums[2][PRODUCTS][4];
#pragma unroll
        for (i32 j = 0; j < ROW_PAIRS; ++j) {
            const auto &w = slices[s + j];
#pragma unroll
            for (i32 u = 0; u < 2; ++u) {
#pragma unroll
                for (i32 i = 0; i < PRODUCTS; ++i) {
                    const Weights &b = bands.at[j][u][i];
                    const i32(&begin)[4] =
                        select_ref(j > 0, sums[u][i], select_ref(i == PRODUCTS - 1, start, zero));
                    multiply_pixels_weights(sums[u][i], w[0][0], w[0][1], w[1][0], w[1][1], b.low, b.high,
                                            begin);
                }
            }
        }
        if (IN_STEP) {
            __syncwarp();
            if (s + 1 < COUNT) {
                read_pair(s + ROW_PAIRS);
            }
        }
        i32 values[8];
        join_sums(values, sums, [&](const i32(&parts)[PRODUCTS], i32 k) {
            return join(parts, 8 * (k / 4) + 4 * (t & 1) + k % 4);
        });
        take(s, values);
    }
}

// This lane has four results each of two neighbouring K-slices, those of the first one first, and the
// neighbouring lane the other four: afterwards each lane has all results of one K-slice.
template <i32 N> __device__ __forceinline__ void exchange_halves(u32 (&words)[N], const u32 (&mine)[N])
{
    constexpr i32 HALF = N / 2;
    const bool second = threadIdx.x & 1;
#pragma unroll
    for (i32 k = 0; k < HALF; ++k) {
        const u32 other = __shfl_xor_sync(~0u, second ? mine[k] : mine[HALF + k], 1);
        words[k] = second ? other : mine[k];
        words[HALF + k] = second ? mine[HALF + k] : other;
    }
}
