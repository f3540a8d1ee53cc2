// The largest sum of eight masks that turn around the centre (src/filter/compass.rs), on planes of bytes: of
// a tile as it lies for tensor cores, but without products.
//
//   p0 p1 p2      a mask's sum = MORE (three in a row around the centre) - FEWER (all eight)
//   p7 .. p3      the largest three: p0 + p1 + max(p7, p2), likewise of p2 + p3, p4 + p5, p6 + p7
//   p6 p5 p4
//
// A word's halves are two results; 16 bits hold all of it.
//
// Compile-time parameters: MORE, FEWER
#pragma once

#include "tensor/tile/operand.cuh"

// Eight neighbouring samples, two a word.
typedef u32 Halves[4];

// Those at and beside eight results.
struct RingRow {
    Halves before, here, after;
};

template <bool ALIGNED, i32 AWAY>
__device__ __forceinline__ void read_halves(Halves &to, const u8 *row, i32 at)
{
    u32 words[2];
    read_words<ALIGNED, 2, 4, AWAY & 3>(words, row, at + AWAY);
#pragma unroll
    for (i32 k = 0; k < 2; ++k) {
        to[2 * k] = __byte_perm(words[k], 0, 0x4140);
        to[2 * k + 1] = __byte_perm(words[k], 0, 0x4342);
    }
}

template <bool ALIGNED> __device__ __forceinline__ void read_ring_row(RingRow &to, const u8 *row, i32 at)
{
    read_halves<ALIGNED, -CHANNELS>(to.before, row, at);
    read_halves<ALIGNED, 0>(to.here, row, at);
    read_halves<ALIGNED, CHANNELS>(to.after, row, at);
}

// Calls take(s, values) with this lane's eight results of each of COUNT steps, which are two rows apart.
// `row` is the one above the first results, in which they would be from byte `at` on, a multiple of four.
template <bool ALIGNED, i32 COUNT, class Take>
__device__ __forceinline__ void largest_around(const u8 *row, i32 at, const Take &take)
{
    RingRow above, level, below;
    read_ring_row<ALIGNED>(below, row, at);
#pragma unroll
    for (i32 s = 0; s < COUNT; ++s) {
        above = below;
        read_ring_row<ALIGNED>(level, row + (2 * s + 1) * pitch<ALIGNED>, at);
        read_ring_row<ALIGNED>(below, row + (2 * s + 2) * pitch<ALIGNED>, at);
        i32 values[8];
#pragma unroll
        for (i32 k = 0; k < 4; ++k) {
            const u32 p[8] = {above.before[k], above.here[k], above.after[k],   level.after[k],
                              below.after[k],  below.here[k], below.before[k], level.before[k]};
            u32 all = 0, most = 0;
#pragma unroll
            for (i32 i = 0; i < 8; i += 2) {
                const u32 pair = p[i] + p[i + 1];
                all += pair;
                most = larger_halves(most, pair + larger_halves(p[(i + 7) % 8], p[(i + 2) % 8]));
            }
            const u32 numbers = MORE * most - FEWER * all;
            values[2 * k] = (i32)(numbers & 0xffff);
            values[2 * k + 1] = (i32)(numbers >> 16);
        }
        take(s, values);
    }
}
