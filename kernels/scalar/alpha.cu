// Colour under alpha: premultiplied before the convolution, unpremultiplied after it. One thread takes four
// bytes of every component.
//
// Compile-time parameters: SAMPLE_BYTES; MAX_VALUE, the largest sample; CHANNELS, components that lie
// interleaved in a plane; COMPONENTS, all of them; ALPHA, which of them is alpha.
#include "common/interleave.cuh"
#include "common/offset.cuh"

typedef unsigned char u8;
typedef unsigned short u16;
typedef long long i64;

#if SAMPLE_BYTES == 1
typedef u8 Sample;
#else
typedef u16 Sample;
#endif

constexpr i32 PLANES = COMPONENTS / CHANNELS;
constexpr i32 PIXELS = 4 / SAMPLE_BYTES;

// A plane of the picture before the step, and of the picture that is made. The same structs are in
// src/engine/cuda/launch/parameters.rs.
struct Rows {
    const u8 *before;
    u8 *after;
    i64 before_pitch;  // bytes
    i64 after_pitch;
};
static_assert(sizeof(Rows) == 32);
static_assert(OFFSET(Rows, before) == 0);
static_assert(OFFSET(Rows, after) == 8);
static_assert(OFFSET(Rows, before_pitch) == 16);
static_assert(OFFSET(Rows, after_pitch) == 24);

struct Picture {
    Rows at[4];
    i32 level[4];      // of each component: the value that stands for no signal
    i32 convolved[4];  // 1: multiplied and divided, 0: left alone
    i32 offset[4];     // the bias of each component
    i32 width;
    i32 height;
    i64 gain;  // times 2^16
    i32 normalise;
    i32 filter_alpha;
    i32 aligned;  // all rows begin at multiples of 16 bytes
};
static_assert(sizeof(Picture) == 208);
static_assert(OFFSET(Picture, at) == 0);
static_assert(OFFSET(Picture, level) == 128);
static_assert(OFFSET(Picture, convolved) == 144);
static_assert(OFFSET(Picture, offset) == 160);
static_assert(OFFSET(Picture, width) == 176);
static_assert(OFFSET(Picture, height) == 180);
static_assert(OFFSET(Picture, gain) == 184);
static_assert(OFFSET(Picture, normalise) == 192);
static_assert(OFFSET(Picture, filter_alpha) == 196);
static_assert(OFFSET(Picture, aligned) == 200);

// Where a plane's pixels from `x` on lie in row `y`.
__device__ __forceinline__ const u8 *place(const u8 *plane, i64 pitch, i32 x, i32 y)
{
    return plane + y * pitch + (i64)x * (CHANNELS * SAMPLE_BYTES);
}

// Four bytes of each component of a plane. Bytes past the row are undefined.
__device__ __forceinline__ void read(u32 (&parts)[CHANNELS], const Picture &picture, const u8 *from, i32 x)
{
    if (picture.aligned) {
        u32 pixels[CHANNELS];
        if constexpr (CHANNELS == 4) {
            const uint4 four = *(const uint4 *)from;
            pixels[0] = four.x;
            pixels[1] = four.y;
            pixels[2] = four.z;
            pixels[3] = four.w;
        } else if constexpr (CHANNELS == 2) {
            const uint2 two = *(const uint2 *)from;
            pixels[0] = two.x;
            pixels[1] = two.y;
        } else {
            pixels[0] = *(const u32 *)from;
        }
        if constexpr (CHANNELS == 1) {
            parts[0] = pixels[0];
        } else {
            deinterleave(parts, pixels);
        }
        return;
    }
#pragma unroll
    for (i32 c = 0; c < CHANNELS; ++c) {
        parts[c] = 0;
#pragma unroll
        for (i32 p = 0; p < PIXELS; ++p) {
            if (x + p < picture.width) {
                parts[c] |= (u32)((const Sample *)from)[p * CHANNELS + c] << 8 * SAMPLE_BYTES * p;
            }
        }
    }
}

// The inverse. The padding of a row up to a multiple of 16 bytes may be written.
__device__ __forceinline__ void write(u8 *to, const Picture &picture, const u32 (&parts)[CHANNELS], i32 x)
{
    if (picture.aligned) {
        u32 pixels[CHANNELS];
        if constexpr (CHANNELS == 1) {
            pixels[0] = parts[0];
        } else {
            interleave(pixels, parts);
        }
        if constexpr (CHANNELS == 4) {
            *(uint4 *)to = make_uint4(pixels[0], pixels[1], pixels[2], pixels[3]);
        } else if constexpr (CHANNELS == 2) {
            *(uint2 *)to = make_uint2(pixels[0], pixels[1]);
        } else {
            *(u32 *)to = pixels[0];
        }
        return;
    }
#pragma unroll
    for (i32 c = 0; c < CHANNELS; ++c) {
#pragma unroll
        for (i32 p = 0; p < PIXELS; ++p) {
            if (x + p < picture.width) {
                ((Sample *)to)[p * CHANNELS + c] = (Sample)(parts[c] >> 8 * SAMPLE_BYTES * p);
            }
        }
    }
}

// Every component of four bytes' pixels.
typedef u32 Group[PLANES][CHANNELS];

__device__ __forceinline__ u32 &component(Group &group, i32 k)
{
    return group[k / CHANNELS][k % CHANNELS];
}

__device__ __forceinline__ i32 sample(u32 word, i32 p)
{
    return (i32)(word >> 8 * SAMPLE_BYTES * p & MAX_VALUE);
}

// level + floor((2 (c - level) a + MAX) / 2 MAX), whose numerator is odd, in numbers that are never negative
// and fit 32 bits.
__device__ __forceinline__ u32 weighted(i32 c, i32 a, i32 level)
{
    return ((u32)(c - level) * (u32)a + (u32)level * MAX_VALUE + MAX_VALUE / 2) / MAX_VALUE;
}

// The largest whole number of `a`s in `n`, which is at most MAX * a; a > 0.
__device__ __forceinline__ u32 quotient(u32 n, u32 a, float reciprocal)
{
    // Up to 255 the product is off by less than the half that is added is away from a whole number.
    return SAMPLE_BYTES == 1 ? (u32)(((float)n + 0.5f) * reciprocal) : n / a;
}

extern "C" __global__ void __launch_bounds__(256) premultiply(const __grid_constant__ Picture picture)
{
    const i32 x = (blockIdx.x * blockDim.x + threadIdx.x) * PIXELS;
    if (x >= picture.width) {
        return;
    }
    for (i32 y = blockIdx.y; y < picture.height; y += gridDim.y) {
        Group group;
#pragma unroll
        for (i32 k = 0; k < PLANES; ++k) {
            const Rows &rows = picture.at[k];
            read(group[k], picture, place(rows.before, rows.before_pitch, x, y), x);
        }
        const u32 alpha = component(group, ALPHA);
#pragma unroll
        for (i32 k = 0; k < COMPONENTS; ++k) {
            u32 &word = component(group, k);
            if (k != ALPHA && picture.convolved[k]) {
                u32 product = 0;
#pragma unroll
                for (i32 p = 0; p < PIXELS; ++p) {
                    product |= weighted(sample(word, p), sample(alpha, p), picture.level[k])
                               << 8 * SAMPLE_BYTES * p;
                }
                word = product;
            }
        }
#pragma unroll
        for (i32 k = 0; k < PLANES; ++k) {
            const Rows &rows = picture.at[k];
            write((u8 *)place(rows.after, rows.after_pitch, x, y), picture, group[k], x);
        }
    }
}

// Works in place on the convolved picture: a pixel's alpha and colours are read and written by the same
// thread.
extern "C" __global__ void __launch_bounds__(256) unpremultiply(const __grid_constant__ Picture picture)
{
    const i32 x = (blockIdx.x * blockDim.x + threadIdx.x) * PIXELS;
    if (x >= picture.width) {
        return;
    }
    for (i32 y = blockIdx.y; y < picture.height; y += gridDim.y) {
        Group before, after;
#pragma unroll
        for (i32 k = 0; k < PLANES; ++k) {
            const Rows &rows = picture.at[k];
            read(before[k], picture, place(rows.before, rows.before_pitch, x, y), x);
            read(after[k], picture, place(rows.after, rows.after_pitch, x, y), x);
        }
        const u32 of_result = picture.filter_alpha ? component(after, ALPHA) : component(before, ALPHA);
        const u32 weights = picture.normalise ? component(after, ALPHA) : of_result;
        u32 unpremultiplied[COMPONENTS] = {};
#pragma unroll
        for (i32 p = 0; p < PIXELS; ++p) {
            const i32 a = sample(weights, p), divisor = a > 0 ? a : 1;
            const float reciprocal = SAMPLE_BYTES == 1 ? __frcp_rn((float)divisor) : 0;
#pragma unroll
            for (i32 k = 0; k < COMPONENTS; ++k) {
                if (k == ALPHA) {
                    continue;
                }
                // floor((N + a 2^15) / (a 2^16)) is floor(floor((N + a 2^15) / 2^16) / a). What is added
                // after it is added before as so many a's, and what would be cut after it is cut before.
                const i64 above = sample(component(after, k), p) - picture.level[k];
                i64 n = (above * (MAX_VALUE * picture.gain) + (i64)a * 32768 >> 16) +
                        ((i64)picture.level[k] + picture.offset[k]) * a;
                n = n < 0 ? 0 : n > (i64)MAX_VALUE * a ? (i64)MAX_VALUE * a : n;
                const u32 value =
                    a > 0 ? quotient((u32)n, (u32)divisor, reciprocal) : (u32)sample(component(before, k), p);
                unpremultiplied[k] |= value << 8 * SAMPLE_BYTES * p;
            }
        }
        unpremultiplied[ALPHA] = of_result;
#pragma unroll
        for (i32 k = 0; k < COMPONENTS; ++k) {
            if (k == ALPHA || picture.convolved[k]) {
                component(after, k) = unpremultiplied[k];
            }
        }
#pragma unroll
        for (i32 k = 0; k < PLANES; ++k) {
            const Rows &rows = picture.at[k];
            write((u8 *)place(rows.after, rows.after_pitch, x, y), picture, after[k], x);
        }
    }
}
