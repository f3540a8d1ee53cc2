// Colour under alpha where a convolution does it on its way: pixels of four bytes, whose zero levels are 0, weighed by their alpha before and divided by
// it after. docs/arithmetic.md has the formulas; alpha.cu does it for all other pixels.
//
// Compile-time parameters:
//   ALPHA         the byte of a pixel that is alpha; -1: colours are not weighed
//   NORMALISE     1: results are divided by the convolved alpha, 0: by the result's
//   FILTER_ALPHA  1: the result's alpha is the convolved one, 0: the one from before
#pragma once

#include "instructions.cuh"

constexpr bool WEIGHED = ALPHA >= 0;
constexpr i32 ALPHA_BYTE = WEIGHED ? ALPHA : 0;

// c * a / 255 of each colour, rounded to the nearest; alpha stays.
__device__ __forceinline__ u32 weighted(u32 pixel)
{
    const u32 alpha = pixel >> 8 * ALPHA_BYTE & 0xff;
    // Two bytes in each word, of which alpha is weighed as 255.
    constexpr u32 OPAQUE = 0xffu << 8 * (ALPHA_BYTE & 2);
    u32 even = (pixel & 0xff00ff) | (ALPHA_BYTE % 2 ? 0 : OPAQUE);
    u32 odd = (pixel >> 8 & 0xff00ff) | (ALPHA_BYTE % 2 ? OPAQUE : 0);
    // n / 255 to the nearest is (n + 128 + (n + 128) / 256) / 256, and no half of a word comes to 65536.
    even = even * alpha + 0x800080;
    odd = odd * alpha + 0x800080;
    even += __byte_perm(even, 0, 0x4341);
    odd += __byte_perm(odd, 0, 0x4341);
    return __byte_perm(even, odd, 0x7351);
}

// c * 255 / a of each colour, rounded to the nearest, halves up, and `offset` more; with `alpha` beside them. Anything where a is 0.
//
// Beside a half lies nothing nearer than 0.5 / a, so that 0.25 / a more turn halves up and nothing else. Errors are below 2^-22 of the quotient, which is at
// most 255 * 255 / a. Then a number is added that is so large that the sum's last bit counts whole ones.
__device__ __forceinline__ u32 straight(u32 pixel, u32 a, u32 alpha, i32 offset)
{
    // A byte's bits are a float of 2^-149 times the byte, so no colour need be converted if all is smaller: a quotient by 2^-49, and what it is multiplied by
    // larger by 2^100.
    constexpr float SMALL = 1.0f / (1ull << 49), LARGE = (float)(1ull << 50) * (float)(1ull << 50);
    constexpr float WHOLE = 12582912.0f;
    const float inverse = reciprocal(__int_as_float(a | 0x4b000000) - 8388608.0f);
    const float scale = 255.0f * LARGE * inverse, half = 0.25f * SMALL * inverse;
    const float whole = (WHOLE + (float)offset) * SMALL;
    i32 values[4];
#pragma unroll
    for (i32 c = 0; c < 4; ++c) {
        const float colour = fmaf(__int_as_float(pixel >> 8 * c & 0xff), scale, half) + whole;
        values[c] = c == ALPHA_BYTE ? (i32)alpha : __float_as_int(colour) - __float_as_int(WHOLE * SMALL);
    }
    return pack_4(values[0], values[1], values[2], values[3]);
}
