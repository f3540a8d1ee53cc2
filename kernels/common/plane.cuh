// Planes as the host describes them to the convolution kernels of integer samples.
//
// Compile-time parameters: SAMPLE_BYTES, CHANNELS, CONVOLVED and BORDER, as in scalar/convolve.cuh.
#pragma once

#include "common/platform/offset.cuh"
#include "common/platform/types.cuh"

#if SAMPLE_BYTES == 1
typedef u8 Sample;
#else
typedef u16 Sample;
#endif

// One interleaved component. The same structs are in src/engine/cuda/launch/parameters.rs.
struct Channel {
    // The bias, which the scalar kernels add in two parts: `low`, below one level, to the sum, and `high`, in
    // levels, after the division. The tensor-core kernels add all of it before the division, as `low` to the
    // sum; `high` is the bias of the next mask (fused), or of the number that sums are combined to.
    i64 low;
    i64 high;
    i32 border;  // the value of source pixels outside the plane, if the border is a constant
    // For a component that is not convolved: its new value, or -1 to copy it. For one whose sums are combined
    // (scalar/combined.cu): its zero level.
    i32 fill;
};
static_assert(sizeof(Channel) == 24);
static_assert(OFFSET(Channel, low) == 0);
static_assert(OFFSET(Channel, high) == 8);
static_assert(OFFSET(Channel, border) == 16);
static_assert(OFFSET(Channel, fill) == 20);

struct Plane {
    const u8 *source;
    u8 *result;
    const u8 *original;  // the samples before the step, for components that are copied
    unsigned long long texture;
    i64 source_pitch;  // bytes
    i64 result_pitch;
    i64 original_pitch;
    i32 width;  // pixels
    i32 height;
    Channel channel[4];
};
static_assert(sizeof(Plane) == 160);
static_assert(OFFSET(Plane, source) == 0);
static_assert(OFFSET(Plane, result) == 8);
static_assert(OFFSET(Plane, original) == 16);
static_assert(OFFSET(Plane, texture) == 24);
static_assert(OFFSET(Plane, source_pitch) == 32);
static_assert(OFFSET(Plane, result_pitch) == 40);
static_assert(OFFSET(Plane, original_pitch) == 48);
static_assert(OFFSET(Plane, width) == 56);
static_assert(OFFSET(Plane, height) == 60);
static_assert(OFFSET(Plane, channel) == 64);

// The planes of a launch. The scalar kernels take plane blockIdx.z.
struct Planes {
    Plane at[4];
    i32 shift;
    i32 max_value;    // the largest sample
    unsigned factor;  // DIVIDES: the multiplier of `quotient`
    i64 start;        // the start value of a row pass's sums
};
static_assert(sizeof(Planes) == 664);
static_assert(OFFSET(Planes, at) == 0);
static_assert(OFFSET(Planes, shift) == 640);
static_assert(OFFSET(Planes, max_value) == 644);
static_assert(OFFSET(Planes, factor) == 648);
static_assert(OFFSET(Planes, start) == 656);

// The quotient of a sum from 0 to 2^31 - 1 by a number that is no power of two, rounded down, as
// src/filter/plan/integer/division.rs proves it.
__device__ __forceinline__ i32 quotient(i32 sum, unsigned factor, i32 shift)
{
    return (i32)((u64)(unsigned)sum * factor >> 32 >> shift);
}

constexpr bool every_channel = CONVOLVED == (1 << CHANNELS) - 1;

__device__ __forceinline__ bool is_convolved(i32 c)
{
    return every_channel || (CONVOLVED >> c & 1);
}

constexpr i32 first_convolved = CONVOLVED & 1 ? 0 : CONVOLVED & 2 ? 1 : CONVOLVED & 4 ? 2 : 3;

// The bias that all components of the plane share.
__device__ __forceinline__ i64 shared_bias(const Plane &plane)
{
    return plane.channel[first_convolved].low;
}
