// Planes of floating-point samples, or of whole ones under alpha, as the host describes them, and how samples
// are read and written. src/filter/plan/float/mod.rs and `WeightedKernel` of src/filter/plan/integer/mod.rs
// define the arithmetic: each operation is one that rounds to nearest, and none is left to the compiler to
// fuse.
//
// Compile-time parameters (given by src/engine/cuda/kernels/float.rs), beside BORDER of common/border.cuh:
//   LEVELS            0: floating-point samples; 1: levels, whole numbers under alpha
//   SAMPLE_BYTES      2 or 4; of levels 1 or 2
//   CHANNELS          samples that one pixel interleaves, any number
//   CONVOLVED         a bit for each convolved channel of up to four; more than four are all convolved
//   THRESHOLD         1: samples that change by less than a threshold are restored
//   MASKS             masks; 1 if it is not given
//   MASK_W, MASK_H    columns and rows of the mask
//   BLOCK_W, BLOCK_H  threads of a block; OUTPUTS: rows that one thread computes
// and of levels
//   SAMPLE_SHIFT      unused low bits of a stored sample
//   ALPHA             which of the interleaved samples is alpha; -1: it has a plane of its own
//   DIVIDED           1: results are levels; 0: they are the sums, as 32-bit floats
//   FILTERED          DIVIDED: a bit for each interleaved sample whose result is stored
//   NORMALISE         DIVIDED: colours are divided by 1: the convolved alpha, 0: the result's
//   TEXTURE           1: kernels without a tile read pixels through texture objects
//
//     samples        ->  (c - level) a, a  ->  sums      ->  levels      or  sums, which float/alpha.cu
//     c c c a c c c a    while a tile is loaded              DIVIDED         divides in a launch of its own
#pragma once

#include "common/border.cuh"
#include "common/platform/offset.cuh"
#include "common/platform/ptx.cuh"
#include "common/platform/types.cuh"

#ifndef MASKS
#define MASKS 1
#endif

#if LEVELS && SAMPLE_BYTES == 1
typedef u8 Sample;
#elif SAMPLE_BYTES == 2
typedef u16 Sample;
#else
typedef float Sample;
#endif

// One interleaved component. The same structs are in src/engine/cuda/launch/float/parameters.rs.
struct FloatChannel {
    // The start value of sums; or it is added to the number that sums are combined to, or to a colour after
    // the division by alpha.
    float bias;
    float border;  // the number to convolve outside the plane, if the border is a constant
    float level;   // of levels: the zero level; 0 for alpha
    i32 fill;      // of levels that are not filtered: their new value, or -1 to copy them
};
static_assert(sizeof(FloatChannel) == 16);
static_assert(OFFSET(FloatChannel, bias) == 0);
static_assert(OFFSET(FloatChannel, border) == 4);
static_assert(OFFSET(FloatChannel, level) == 8);
static_assert(OFFSET(FloatChannel, fill) == 12);

struct FloatPlane {
    const u8 *source;
    u8 *result;
    const u8 *original;  // the samples before the step, for components that are copied and for thresholds
    const u8 *alpha;     // of levels: the plane that holds their alpha; 0: they are not multiplied by it
    i64 source_pitch;    // bytes
    i64 result_pitch;
    i64 original_pitch;
    i64 alpha_pitch;
    u64 texture;  // over the source, and over the alpha
    u64 alpha_texture;
    i32 width;  // pixels
    i32 height;
    FloatChannel channel[4];  // more than four channels are all like the first
};
static_assert(sizeof(FloatPlane) == 152);
static_assert(OFFSET(FloatPlane, source) == 0);
static_assert(OFFSET(FloatPlane, result) == 8);
static_assert(OFFSET(FloatPlane, original) == 16);
static_assert(OFFSET(FloatPlane, alpha) == 24);
static_assert(OFFSET(FloatPlane, source_pitch) == 32);
static_assert(OFFSET(FloatPlane, result_pitch) == 40);
static_assert(OFFSET(FloatPlane, original_pitch) == 48);
static_assert(OFFSET(FloatPlane, alpha_pitch) == 56);
static_assert(OFFSET(FloatPlane, texture) == 64);
static_assert(OFFSET(FloatPlane, alpha_texture) == 72);
static_assert(OFFSET(FloatPlane, width) == 80);
static_assert(OFFSET(FloatPlane, height) == 84);
static_assert(OFFSET(FloatPlane, channel) == 88);

// The planes of a launch. A block works on plane blockIdx.z.
struct FloatPlanes {
    FloatPlane at[4];
    float threshold;
    float scale;  // the factor of magnitudes
    float gain;   // the factor of colours before the division by alpha
    float most;   // the largest level
    i32 aligned;  // 1: all rows begin at multiples of 16 bytes
    i32 is_ready;  // 1: no launch that may still be in flight writes what this one reads
};
static_assert(sizeof(FloatPlanes) == 632);
static_assert(OFFSET(FloatPlanes, at) == 0);
static_assert(OFFSET(FloatPlanes, threshold) == 608);
static_assert(OFFSET(FloatPlanes, scale) == 612);
static_assert(OFFSET(FloatPlanes, gain) == 616);
static_assert(OFFSET(FloatPlanes, most) == 620);
static_assert(OFFSET(FloatPlanes, aligned) == 624);
static_assert(OFFSET(FloatPlanes, is_ready) == 628);

constexpr i32 RX = MASK_W / 2, RY = MASK_H / 2;

constexpr bool every_channel = CHANNELS > 4 || CONVOLVED == (1 << (CHANNELS > 4 ? 0 : CHANNELS)) - 1;

__device__ __forceinline__ bool is_convolved(i32 c)
{
    return every_channel || (CONVOLVED >> c & 1);
}

__device__ __forceinline__ const FloatChannel &channel_of(const FloatPlane &plane, i32 c)
{
    return plane.channel[CHANNELS == 1 || CHANNELS > 4 ? 0 : c];
}

// The start value of the sums of component `c`, or what is added to the number that they are combined to. 0
// for levels, whose bias is added after the division by alpha.
__device__ __forceinline__ float start_of(const FloatPlane &plane, i32 c)
{
    return LEVELS ? 0.0f : channel_of(plane, c).bias;
}

__device__ __forceinline__ float value_of(float stored)
{
    return stored;
}

// A step's result for a sample that was `before`.
__device__ __forceinline__ float thresholded(float value, float before, float threshold)
{
    return fabsf(__fadd_rn(value, -before)) < threshold ? before : value;
}

#if LEVELS
// A stored sample's level.
__device__ __forceinline__ float value_of(Sample stored)
{
    return (float)(stored >> SAMPLE_SHIFT);
}

// 2^23, and the bits of 2^23 + n for whole numbers n below it.
constexpr float RAISED = 8388608.0f;
constexpr u32 RAISED_BITS = 0x4b000000;

// The bits of 2^23 + max(0, min(floor(x), most)); a NaN counts as 0.
__device__ __forceinline__ u32 raised_level(float x, float most)
{
    return (u32)__float_as_int(__fadd_rd(fminf(fmaxf(x, 0.0f), most), RAISED));
}

// max(0, min(floor(x), most)); a NaN counts as 0.
__device__ __forceinline__ float level_of(float x, float most)
{
    return __fadd_rn(__int_as_float((i32)raised_level(x, most)), -RAISED);
}

// Stores a level.
__device__ __forceinline__ void store(Sample &to, float level)
{
    to = (Sample)((u32)level << SAMPLE_SHIFT);
}
#else
__device__ __forceinline__ float value_of(u16 stored)
{
    return widened(stored);
}

// Stores a number. Every NaN becomes the quiet NaN without a payload.
__device__ __forceinline__ void store(u16 &to, float value)
{
    to = value != value ? (u16)0x7e00 : narrowed(value);
}

__device__ __forceinline__ void store(float &to, float value)
{
    to = value != value ? __int_as_float(0x7fc00000) : value;
}
#endif

// Stores a result, or `before` if the component is not convolved.
__device__ __forceinline__ void store_result(Sample &to, float value, const Sample &before, bool convolved,
                                             float threshold)
{
    if (convolved) {
        store(to, THRESHOLD ? thresholded(value, value_of(before), threshold) : value);
    } else {
        to = before;
    }
}

// Writes one sample of the result; for levels their sum.
__device__ __forceinline__ void store_sample(const FloatPlanes &planes, const FloatPlane &plane, i32 sample,
                                             i32 c, i32 y, float value)
{
#if LEVELS
    if (is_convolved(c)) {
        *((float *)(plane.result + (i64)y * plane.result_pitch) + sample) = value;
    }
#else
    Sample *to = (Sample *)(plane.result + (i64)y * plane.result_pitch) + sample;
    const Sample *before = (const Sample *)(plane.original + (i64)y * plane.original_pitch) + sample;
    store_result(*to, value, *before, is_convolved(c), planes.threshold);
#endif
}

#if LEVELS
// The level of sample `at` in row `y`.
__device__ __forceinline__ float level_at(const u8 *plane, i64 pitch, u64 texture, i32 at, i32 y)
{
#if TEXTURE
    // Point sampling at a texel's centre.
    return value_of(tex2D<Sample>(texture, (float)at + 0.5f, (float)y + 0.5f));
#else
    return value_of(__ldg((const Sample *)(plane + (i64)y * pitch) + at));
#endif
}

// The number to convolve of component `c` of pixel (x, y), which lies in the plane: alpha itself, or colour
// above its zero level times alpha.
__device__ __forceinline__ float weighted_level(const FloatPlane &plane, i32 x, i32 y, i32 c)
{
    const i32 pixel = x * CHANNELS;
    const float value = level_at(plane.source, plane.source_pitch, plane.texture, pixel + c, y);
    if (c == ALPHA || plane.alpha == nullptr) {
        return value;
    }
    const i32 at = pixel + (ALPHA < 0 ? 0 : ALPHA);
    const float alpha = level_at(plane.alpha, plane.alpha_pitch, plane.alpha_texture, at, y);
    return __fmul_rn(__fadd_rn(value, -channel_of(plane, c).level), alpha);
}
#endif

// The number to convolve of component `c` of pixel (x, y), which lies in the plane: from a sample, or from a
// float that an earlier pass has written.
template <class Stored>
__device__ __forceinline__ float number_at(const FloatPlane &plane, i32 x, i32 y, i32 c)
{
#if LEVELS
    if constexpr (sizeof(Stored) < sizeof(float)) {
        return weighted_level(plane, x, y, c);
    }
#endif
    const Stored *row = (const Stored *)(plane.source + (i64)y * plane.source_pitch);
    return value_of(__ldg(row + x * CHANNELS + c));
}
