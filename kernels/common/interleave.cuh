// Deinterleaves components and interleaves them again, four bytes of each at a time.
//
// Compile-time parameters: SAMPLE_BYTES, CHANNELS, as in scalar/convolve.cuh.
#pragma once

#include "common/platform/types.cuh"

// Deinterleaves CHANNELS words of pixels: to one word of each component.
__device__ __forceinline__ void deinterleave(u32 (&parts)[CHANNELS], const u32 (&pixels)[CHANNELS])
{
    if constexpr (CHANNELS == 1) {
        parts[0] = pixels[0];
    } else if constexpr (SAMPLE_BYTES == 2) {
        if constexpr (CHANNELS == 2) {
            parts[0] = __byte_perm(pixels[0], pixels[1], 0x5410);
            parts[1] = __byte_perm(pixels[0], pixels[1], 0x7632);
        } else if constexpr (CHANNELS == 3) {
            parts[0] = __byte_perm(pixels[0], pixels[1], 0x7610);
            parts[1] = __byte_perm(pixels[0], pixels[2], 0x5432);
            parts[2] = __byte_perm(pixels[1], pixels[2], 0x7610);
        } else if constexpr (CHANNELS == 4) {
#pragma unroll
            for (i32 k = 0; k < 2; ++k) {
                parts[2 * k] = __byte_perm(pixels[k], pixels[k + 2], 0x5410);
                parts[2 * k + 1] = __byte_perm(pixels[k], pixels[k + 2], 0x7632);
            }
        }
    } else if constexpr (CHANNELS == 2) {
        parts[0] = __byte_perm(pixels[0], pixels[1], 0x6420);
        parts[1] = __byte_perm(pixels[0], pixels[1], 0x7531);
    } else if constexpr (CHANNELS == 3) {
        parts[0] = __byte_perm(__byte_perm(pixels[0], pixels[1], 0x0630), pixels[2], 0x5210);
        parts[1] = __byte_perm(__byte_perm(pixels[0], pixels[1], 0x0741), pixels[2], 0x6210);
        parts[2] = __byte_perm(__byte_perm(pixels[0], pixels[1], 0x0052), pixels[2], 0x7410);
    } else if constexpr (CHANNELS == 4) {
        // Two components of two pixels each.
#pragma unroll
        for (i32 k = 0; k < 2; ++k) {
            const u32 first = __byte_perm(pixels[0], pixels[1], k == 0 ? 0x5140 : 0x7362);
            const u32 second = __byte_perm(pixels[2], pixels[3], k == 0 ? 0x5140 : 0x7362);
            parts[2 * k] = __byte_perm(first, second, 0x5410);
            parts[2 * k + 1] = __byte_perm(first, second, 0x7632);
        }
    }
}

// Deinterleaves 2 CHANNELS words of two-byte samples and splits these: to a word of low bytes and a word of
// high bytes of each component.
__device__ __forceinline__ void deinterleave(u32 (&parts)[2 * CHANNELS], const u32 (&pixels)[2 * CHANNELS])
{
    u32 halves[2][CHANNELS];
#pragma unroll
    for (i32 h = 0; h < 2; ++h) {
        u32 half[CHANNELS];
#pragma unroll
        for (i32 c = 0; c < CHANNELS; ++c) {
            half[c] = pixels[CHANNELS * h + c];
        }
        deinterleave(halves[h], half);
    }
#pragma unroll
    for (i32 c = 0; c < CHANNELS; ++c) {
        parts[2 * c] = __byte_perm(halves[0][c], halves[1][c], 0x6420);
        parts[2 * c + 1] = __byte_perm(halves[0][c], halves[1][c], 0x7531);
    }
}

// Interleaves one word of each component: to CHANNELS words of pixels.
__device__ __forceinline__ void interleave(u32 (&pixels)[CHANNELS], const u32 (&parts)[CHANNELS])
{
    if constexpr (CHANNELS == 1) {
        pixels[0] = parts[0];
    } else if constexpr (SAMPLE_BYTES == 2) {
        if constexpr (CHANNELS == 2) {
            pixels[0] = __byte_perm(parts[0], parts[1], 0x5410);
            pixels[1] = __byte_perm(parts[0], parts[1], 0x7632);
        } else if constexpr (CHANNELS == 3) {
            pixels[0] = __byte_perm(parts[0], parts[1], 0x5410);
            pixels[1] = __byte_perm(parts[2], parts[0], 0x7610);
            pixels[2] = __byte_perm(parts[1], parts[2], 0x7632);
        } else if constexpr (CHANNELS == 4) {
#pragma unroll
            for (i32 k = 0; k < 2; ++k) {
                pixels[k] = __byte_perm(parts[2 * k], parts[2 * k + 1], 0x5410);
                pixels[k + 2] = __byte_perm(parts[2 * k], parts[2 * k + 1], 0x7632);
            }
        }
    } else if constexpr (CHANNELS == 2) {
        pixels[0] = __byte_perm(parts[0], parts[1], 0x5140);
        pixels[1] = __byte_perm(parts[0], parts[1], 0x7362);
    } else if constexpr (CHANNELS == 3) {
        // Two components of the first two pixels, and of the last two.
        const u32 first = __byte_perm(parts[0], parts[1], 0x5140),
                  last = __byte_perm(parts[0], parts[1], 0x7362);
        pixels[0] = __byte_perm(first, parts[2], 0x2410);
        pixels[1] = __byte_perm(__byte_perm(first, parts[2], 0x0053), last, 0x5410);
        pixels[2] = __byte_perm(last, parts[2], 0x7326);
    } else if constexpr (CHANNELS == 4) {
#pragma unroll
        for (i32 k = 0; k < 2; ++k) {
            const i32 order = k == 0 ? 0x5140 : 0x7362;
            const u32 first = __byte_perm(parts[0], parts[1], order),
                      last = __byte_perm(parts[2], parts[3], order);
            pixels[2 * k] = __byte_perm(first, last, 0x5410);
            pixels[2 * k + 1] = __byte_perm(first, last, 0x7632);
        }
    }
}
