// Planes of floating-point samples as the host describes them, and how samples are read and written.
// src/filter/float_plan.rs defines the arithmetic: each operation is one that rounds to nearest, and none is
// left to the compiler to fuse.
//
// Compile-time parameters (given by src/engine/cuda/kernels/float.rs), beside BORDER of common/border.cuh:
//   SAMPLE_BYTES      2 or 4
//   CHANNELS          samples that one pixel interleaves, any number
//   CONVOLVED         a bit for each of up to four that is convolved; of more channels all are
//   THRESHOLD         1: results that differ by less than a threshold stay what they were
//   MASKS             masks whose sums are made, 1 unless a text says more
//   MASK_W, MASK_H    columns and rows of the mask
//   BLOCK_W, BLOCK_H  threads of a block; OUTPUTS: rows that one thread computes
#pragma once

#include "common/border.cuh"
#include "common/offset.cuh"
#include "common/ptx.cuh"
#include "common/types.cuh"

#ifndef MASKS
#define MASKS 1
#endif

#if SAMPLE_BYTES == 2
typedef u16 Sample;
#else
typedef float Sample;
#endif

// One interleaved component. The same structs are in src/engine/cuda/launch/float_parameters.rs.
struct FloatChannel {
    float bias;    // what sums begin with; or what is added to a number that is made of several
    float border;  // the source's value outside the plane, where the border holds a constant
};
static_assert(sizeof(FloatChannel) == 8);
static_assert(OFFSET(FloatChannel, bias) == 0);
static_assert(OFFSET(FloatChannel, border) == 4);

struct FloatPlane {
    const u8 *source;
    u8 *result;
    const u8 *original;  // the samples before the step, for components that are copied and for thresholds
    i64 source_pitch;    // bytes
    i64 result_pitch;
    i64 original_pitch;
    i32 width;  // pixels
    i32 height;
    FloatChannel channel[4];  // of more than four channels all are as the first one
};
static_assert(sizeof(FloatPlane) == 88);
static_assert(OFFSET(FloatPlane, source) == 0);
static_assert(OFFSET(FloatPlane, result) == 8);
static_assert(OFFSET(FloatPlane, original) == 16);
static_assert(OFFSET(FloatPlane, source_pitch) == 24);
static_assert(OFFSET(FloatPlane, result_pitch) == 32);
static_assert(OFFSET(FloatPlane, original_pitch) == 40);
static_assert(OFFSET(FloatPlane, width) == 48);
static_assert(OFFSET(FloatPlane, height) == 52);
static_assert(OFFSET(FloatPlane, channel) == 56);

// Planes that one launch works on, one a grid layer.
struct FloatPlanes {
    FloatPlane at[4];
    float threshold;
    float scale;  // what magnitudes are multiplied by
    i32 aligned;  // 1: all rows begin at multiples of 16 bytes
    i32 is_ready;  // 1: nothing that this launch reads is written by one that may still be in flight
};
static_assert(sizeof(FloatPlanes) == 368);
static_assert(OFFSET(FloatPlanes, at) == 0);
static_assert(OFFSET(FloatPlanes, threshold) == 352);
static_assert(OFFSET(FloatPlanes, scale) == 356);
static_assert(OFFSET(FloatPlanes, aligned) == 360);
static_assert(OFFSET(FloatPlanes, is_ready) == 364);

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

__device__ __forceinline__ float value_of(u16 stored)
{
    return widened(stored);
}

__device__ __forceinline__ float value_of(float stored)
{
    return stored;
}

// How a number is stored. What is no number becomes the quiet one without a payload.
__device__ __forceinline__ void store(u16 &to, float value)
{
    to = value != value ? (u16)0x7e00 : narrowed(value);
}

__device__ __forceinline__ void store(float &to, float value)
{
    to = value != value ? __int_as_float(0x7fc00000) : value;
}

// What a step makes of a sample that was `before`.
__device__ __forceinline__ float thresholded(float value, float before, float threshold)
{
    return fabsf(__fadd_rn(value, -before)) < threshold ? before : value;
}

// Stores a result, or what was there where the component is not convolved.
__device__ __forceinline__ void store_result(Sample &to, float value, const Sample &before, bool convolved,
                                             float threshold)
{
    if (convolved) {
        store(to, THRESHOLD ? thresholded(value, value_of(before), threshold) : value);
    } else {
        to = before;
    }
}
