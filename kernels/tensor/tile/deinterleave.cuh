// Prepares a loaded tile for the products: pixels are deinterleaved, and colours premultiplied.
//
//   stage         r0 g0 b0 r1 g1 b1 ..       with DEINTERLEAVE to rows of one component each,
//                                            16-bit samples byte by byte
//   part 0        r0 r1 r2 r3 ..             low bytes of component 0
//   part 1        g0 g1 g2 g3 ..
//
// With DEINTERLEAVE4 four pixels of four bytes are deinterleaved where they lie.
#pragma once

#include "common/interleave.cuh"
#include "common/premultiply.cuh"
#include "tensor/tile/geometry.cuh"

// Moves each component of a loaded tile to rows of its own, from the byte on that the first window needs.
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
        if constexpr (PREMULTIPLIED) {
            deinterleave_premultiplied(separated, pixels);
        } else {
            if constexpr (DIGITS == 2) {
                drop_unused_bits(pixels);
            }
            deinterleave(separated, pixels);
        }
#pragma unroll
        for (i32 p = 0; p < COUNT; ++p) {
            const i32 c = p / DIGITS;
            if (is_convolved(c) || c == ALPHA) {
                *(u32 *)(parts + p * PART + r * PART_PITCH + 4 * at) = separated[p];
            }
        }
    }
}

// Four pixels with their colours multiplied by alpha, as pixels or as four bytes of each component.
__device__ __forceinline__ void premultiply_four(u32 (&multiplied)[4], const u32 (&pixels)[4])
{
    if constexpr (DEINTERLEAVE4) {
        deinterleave_premultiplied(multiplied, pixels);
    } else {
#pragma unroll
        for (i32 k = 0; k < 4; ++k) {
            multiplied[k] = premultiplied(pixels[k]);
        }
    }
}

// Premultiplies the colours of a loaded tile in place.
template <bool ALIGNED> __device__ __forceinline__ void premultiply_tile(u8 *stage)
{
    constexpr i32 FIRST = (LEFT - REACH) / 16, COUNT = ALIGNED_CHUNKS - FIRST;
    for (i32 k = threadIdx.x; k < ROWS * COUNT; k += THREADS) {
        const i32 r = k / COUNT;
        u8 *row = stage + r * pitch<ALIGNED>;
        u8 *p = row + 16 * (FIRST + k - r * COUNT) + (ALIGNED ? 0 : misalignment_of(row));
        u32 pixels[4], multiplied[4];
        if constexpr (ALIGNED) {
            read_four_words<ALIGNED>(pixels, p, 0);
            premultiply_four(multiplied, pixels);
            *(uint4 *)p = make_uint4(multiplied[0], multiplied[1], multiplied[2], multiplied[3]);
        } else {
            // Byte by byte, since others write the rest of the words.
#pragma unroll
            for (i32 i = 0; i < 4; ++i) {
                pixels[i] = p[4 * i] | p[4 * i + 1] << 8 | p[4 * i + 2] << 16 | (u32)p[4 * i + 3] << 24;
            }
            premultiply_four(multiplied, pixels);
#pragma unroll
            for (i32 i = 0; i < 16; ++i) {
                p[i] = (u8)(multiplied[i / 4] >> 8 * (i % 4));
            }
        }
    }
}
