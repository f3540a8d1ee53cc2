// Premultiplied filtering inside the convolution kernel: pixels of four bytes, whose zero levels are 0,
// multiplied by their alpha before and divided by it after. docs/arithmetic.md has the formulas;
// scalar/alpha.cu does it for all other pixels.
//
// Compile-time parameters:
//   ALPHA         the byte of a pixel that is alpha; -1: colours are not multiplied
//   NORMALISE     1: results are divided by the convolved alpha, 0: by the result's
//   FILTER_ALPHA  1: the result's alpha is the convolved one, 0: the one from before
#pragma once

#include "common/ptx.cuh"

constexpr bool PREMULTIPLIED = ALPHA >= 0;
constexpr i32 ALPHA_BYTE = PREMULTIPLIED ? ALPHA : 0;

// Colours times alpha, c * a / 255 rounded to the nearest, as the third byte of `values`; that of alpha is
// not touched.
//
// n / 255 to the nearest is (n + 128) * 257 / 65536. Dot products pick the bytes that they multiply, and
// leave the pipe that logic and permutations share, which is the busiest, to others.
__device__ __forceinline__ void premultiply_colours(u32 (&values)[4], u32 pixel)
{
    const u32 low = __byte_perm(pixel, 0, 0x4400 | ALPHA_BYTE * 0x11),
              high = low << 16;  // 257 * a in either half
    constexpr u32 HALF = 128 * 257;
    if (ALPHA_BYTE != 0) {
        values[0] = dot_2<0>(low, pixel, HALF);
    }
    if (ALPHA_BYTE != 1) {
        values[1] = dot_2<0>(high, pixel, HALF);
    }
    if (ALPHA_BYTE != 2) {
        values[2] = dot_2<1>(low, pixel, HALF);
    }
    if (ALPHA_BYTE != 3) {
        values[3] = dot_2<1>(high, pixel, HALF);
    }
}

// A pixel of four words' bytes: number `of_alpha` of alpha's word and number `of_colour` of the others.
__device__ __forceinline__ u32 pixel_of(const u32 (&words)[4], i32 of_colour, i32 of_alpha)
{
    auto byte = [&](i32 c) { return c == ALPHA_BYTE ? of_alpha : of_colour; };
    const u32 first = __byte_perm(words[0], words[1], byte(0) | (4 + byte(1)) << 4);
    const u32 last = __byte_perm(words[2], words[3], byte(2) | (4 + byte(3)) << 4);
    return __byte_perm(first, last, 0x5410);
}

// A pixel, its colours multiplied by alpha.
__device__ __forceinline__ u32 premultiplied(u32 pixel)
{
    u32 values[4];
    premultiply_colours(values, pixel);
    values[ALPHA_BYTE] = pixel;
    return pixel_of(values, 2, ALPHA_BYTE);
}

// Four pixels multiplied by alpha, as four bytes of each component.
template <i32 N>
__device__ __forceinline__ void deinterleave_premultiplied(u32 (&parts)[N], const u32 (&pixels)[N])
{
    static_assert(N == 4, "a pixel is three colours and alpha");
    u32 values[4][4];
#pragma unroll
    for (i32 k = 0; k < 4; ++k) {
        premultiply_colours(values[k], pixels[k]);
        values[k][ALPHA_BYTE] = pixels[k];
    }
#pragma unroll
    for (i32 c = 0; c < 4; ++c) {
        const i32 byte = c == ALPHA_BYTE ? ALPHA_BYTE : 2, order = byte | (4 + byte) << 4;
        parts[c] = __byte_perm(__byte_perm(values[0][c], values[1][c], order),
                               __byte_perm(values[2][c], values[3][c], order), 0x5410);
    }
}

// Byte k of a word, and `more`; see above for why so. One of four keeps the pipes in balance.
__device__ __forceinline__ u32 byte_of(u32 word, i32 k, u32 more)
{
    return k == 0 && more == 0 ? word & 0xff : dot_4(word, 1u << 8 * k, more);
}

// Added to an integer below 2^23, this gives the bits of a float; and the float that 0 gives.
constexpr u32 FLOAT_BITS = 0x4b000000;
constexpr float FLOAT_ZERO = 8388608.0f;

// A pixel of c * 255 / a of each colour, rounded to the nearest, halves up, and cut to 255, with byte
// `of_alpha` of `alpha` beside them. Anything where a is 0. `a` comes as the bits of a float, see above.
//
// Quotients have 24 fraction bits, so that the integer part is a byte by itself. Where the mask is an average
// no colour is larger than a; elsewhere larger ones saturate to 255. Near a half there is no quotient closer
// than 0.5 / a, which is 2^-9 and more. The reciprocal is too large by 2^-20 of itself, at most 2^-12 in the
// quotient and more than all rounding errors: so halves round up, and nothing else changes.
__device__ __forceinline__ u32 unpremultiplied(const u32 (&colours)[4], u32 a, u32 alpha, i32 of_alpha)
{
    constexpr float UNIT = 1.0f / (255.0f * (1 << 24) * (1.0f + 1.0f / (1 << 20)));
    const u32 inverse = whole_part(reciprocal(fmaf(__int_as_float(a), UNIT, -FLOAT_ZERO * UNIT)));
    u32 values[4];
#pragma unroll
    for (i32 c = 0; c < 4; ++c) {
        values[c] = c == ALPHA_BYTE
                        ? alpha
                        : (NORMALISE ? colours[c] : min(colours[c], a - FLOAT_BITS)) * inverse + (1u << 23);
    }
    return pixel_of(values, 3, of_alpha);
}
