// The largest sum of the eight rotations of one compass mask (src/filter/plan/integer/compass.rs), without
// products, from a tile as tensor/direct.cu loads it.
//
//   p0 p1 p2      a mask's sum = MORE (three in a row around the centre) - FEWER (all eight)
//   p7 .. p3      the largest three: p0 + p1 + max(p7, p2), likewise of p2 + p3, p4 + p5, p6 + p7
//   p6 p5 p4
//
// Where 16 bits hold the sum of eight samples (up to 12 bits), a word's halves are two results; else a word
// is one. The row below a result is the row above the lane's next result, two rows down, so that the compiler
// can reuse its sums of two.
//
// Compile-time parameters: MORE, FEWER
//   HALVES        1: 16 bits hold the sums of eight samples
//   HALF_NUMBERS  1: 16 bits also hold MORE times three samples and FEWER times eight
//   ONLY_CLAMPED  1: so, and such numbers, with biases of at least 0, are bytes but for those above 255
#pragma once

#include "tensor/tile/operand.cuh"

// What is made of eight results: words of bytes, if they stay in halves until then, or numbers.
constexpr bool BYTES_IN_HALVES = ONLY_CLAMPED && SAME_BIAS;
#if ONLY_CLAMPED && SAME_BIAS
typedef u32 Made[2];
#else
typedef Total Made[8];
#endif

// Eight neighbouring samples, or sums of them.
constexpr i32 RING_WORDS = HALVES ? 4 : 8;
typedef u32 Eight[RING_WORDS];

// A row's samples at eight results, and a pixel before and after each.
struct RingRow {
    Eight before, here, after;
};

__device__ __forceinline__ u32 larger(u32 a, u32 b)
{
    if constexpr (HALVES) {
        return larger_halves(a, b);
    } else {
        return a > b ? a : b;
    }
}

// Words beside eight samples that hold their neighbours, on either side.
constexpr i32 BESIDE = (CHANNELS * SAMPLE_BYTES + 3) / 4;

// Takes eight bytes out of words into halves, from byte FIRST on. Where two of a row's vectors hold the same
// pair of bytes, such as those before and after gray results, the compiler takes it once.
template <i32 FIRST, i32 N> __device__ __forceinline__ void take_bytes(Eight &to, const u32 (&words)[N])
{
#pragma unroll
    for (i32 k = 0; k < 4; ++k) {
        const i32 at = (FIRST + 2 * k) / 4, byte = (FIRST + 2 * k) % 4;
        to[k] = byte < 3 ? __byte_perm(words[at], 0, 0x4140 + 0x0101 * byte)
                         : __byte_perm(words[at] >> 24, words[at + byte / 3], 0x1410);
    }
}

// Takes eight samples of two bytes out of words, from sample `first` on.
template <i32 N> __device__ __forceinline__ void take_eight(Eight &to, const u32 (&words)[N], i32 first)
{
#pragma unroll
    for (i32 k = 0; k < RING_WORDS; ++k) {
        if constexpr (HALVES) {
            const i32 at = first / 2 + k;
            to[k] = first % 2 == 0 ? words[at] : __byte_perm(words[at], words[at + first % 2], 0x5432);
        } else {
            const u32 two = words[(first + k) / 2];
            to[k] = (first + k) % 2 == 0 ? two & 0xffff : two >> 16;
        }
    }
}

// Reads a row's samples for eight results from byte `at` on, a multiple of four.
template <bool ALIGNED> __device__ __forceinline__ void read_ring_row(RingRow &to, const u8 *row, i32 at)
{
    constexpr i32 WORDS = 2 * SAMPLE_BYTES + 2 * BESIDE;
    u32 words[WORDS];
    read_words<ALIGNED, WORDS, 4, 0>(words, row, at - 4 * BESIDE);
    if constexpr (SAMPLE_BYTES == 1) {
        take_bytes<4 * BESIDE - CHANNELS>(to.before, words);
        take_bytes<4 * BESIDE>(to.here, words);
        take_bytes<4 * BESIDE + CHANNELS>(to.after, words);
    } else {
        take_eight(to.before, words, 2 * BESIDE - CHANNELS);
        take_eight(to.here, words, 2 * BESIDE);
        take_eight(to.after, words, 2 * BESIDE + CHANNELS);
    }
}

// The weighted sum of the largest three samples and all eight.
__device__ __forceinline__ Total weighted_sum(u32 most, u32 all)
{
    return (Total)MORE * (Total)most - (Total)FEWER * (Total)all;
}

// Calls take(s, made) with this lane's eight results of each of COUNT steps, which are two rows apart. `row`
// is the row above the first results; results begin at byte `at` of their row, a multiple of four. Halves
// that become bytes have `bias` added.
template <bool ALIGNED, i32 COUNT, class Take>
__device__ __forceinline__ void largest_around(const u8 *row, i32 at, u32 bias, const Take &take)
{
    static_assert(HALVES || SAMPLE_BYTES == 2, "sums of bytes fit halves");
    RingRow above, level, below;
    read_ring_row<ALIGNED>(below, row, at);
#pragma unroll
    for (i32 s = 0; s < COUNT; ++s) {
        above = below;
        read_ring_row<ALIGNED>(level, row + (2 * s + 1) * pitch<ALIGNED>, at);
        read_ring_row<ALIGNED>(below, row + (2 * s + 2) * pitch<ALIGNED>, at);
        Total values[8];
        Eight halves;
#pragma unroll
        for (i32 k = 0; k < RING_WORDS; ++k) {
            const u32 p[8] = {above.before[k], above.here[k], above.after[k],   level.after[k],
                              below.after[k],  below.here[k], below.before[k], level.before[k]};
            u32 all = p[0] + p[1], most = all + larger(p[7], p[2]);
#pragma unroll
            for (i32 i = 2; i < 8; i += 2) {
                const u32 pair = p[i] + p[i + 1];
                all += pair;
                most = larger(most, pair + larger(p[i - 1], p[(i + 2) % 8]));
            }
            if constexpr (BYTES_IN_HALVES) {
                halves[k] = smaller_halves(MORE * most - FEWER * all + bias, 0x00ff00ff);
            } else if constexpr (HALF_NUMBERS) {
                const u32 numbers = MORE * most - FEWER * all;
                values[2 * k] = (Total)(numbers & 0xffff);
                values[2 * k + 1] = (Total)(numbers >> 16);
            } else if constexpr (HALVES) {
                values[2 * k] = weighted_sum(most & 0xffff, all & 0xffff);
                values[2 * k + 1] = weighted_sum(most >> 16, all >> 16);
            } else {
                values[k] = weighted_sum(most, all);
            }
        }
        if constexpr (BYTES_IN_HALVES) {
            const u32 words[2] = {__byte_perm(halves[0], halves[1], 0x6420),
                                  __byte_perm(halves[2], halves[3], 0x6420)};
            take(s, words);
        } else {
            take(s, values);
        }
    }
}
