// Deinterleaves the pixels of a loaded tile for the products.
//
//   stage         r0 g0 b0 r1 g1 b1 ..       with DEINTERLEAVE to rows of one component each,
//                                            16-bit samples byte by byte
//   part 0        r0 r1 r2 r3 ..             low bytes of component 0
//   part 1        g0 g1 g2 g3 ..
#pragma once

#include "common/interleave.cuh"
#include "tensor/tile/geometry.cuh"

// Copies each component of a loaded tile to a part of its own, from the first byte of the first K-slice on.
template <bool ALIGNED> __device__ __forceinline__ void deinterleave_tile(u8 *parts, const u8 *stage)
{
    constexpr i32 WORDS = PART_PITCH / 4, COUNT = CHANNELS * DIGITS;
    for (i32 k = threadIdx.x; k < ROWS * WORDS; k += THREADS) {
        const i32 r = k / WORDS, at = k - r * WORDS;
        const u8 *row = stage + r * pitch<ALIGNED>;
        const i32 offset = START + 4 * COUNT * at + (ALIGNED ? 0 : misalignment_of(row));
        u32 pixels[COUNT], separated[COUNT];
        if constexpr (ALIGNED && COUNT == 4 && START % 16 == 0) {
            read_four_words<ALIGNED>(pixels, row, offset);
        } else if constexpr (ALIGNED && COUNT % 2 == 0 && START % 8 == 0) {
#pragma unroll
            for (i32 p = 0; p < COUNT; p += 2) {
                const uint2 two = *(const uint2 *)(row + offset + 4 * p);
                pixels[p] = two.x;
                pixels[p + 1] = two.y;
            }
        } else {
            const i32 remainder = ALIGNED ? START % 4 : offset & 3;
            const u8 *first = row + offset - remainder;
#pragma unroll
            for (i32 p = 0; p < COUNT; ++p) {
                pixels[p] = word(first + 4 * p);
                if (!ALIGNED || START % 4 != 0) {
                    pixels[p] = __funnelshift_r(pixels[p], word(first + 4 * p + 4), 8 * remainder);
                }
            }
        }
        if constexpr (DIGITS == 2) {
            drop_unused_bits(pixels);
        }
        deinterleave(separated, pixels);
#pragma unroll
        for (i32 p = 0; p < COUNT; ++p) {
            const i32 c = p / DIGITS;
            if (is_convolved(c)) {
                *(u32 *)(parts + p * PART + r * PART_PITCH + 4 * at) = separated[p];
            }
        }
    }
}
