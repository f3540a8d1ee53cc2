// Planes as the host describes them to every convolution kernel, and what lies beyond their edges.
//
// Compile-time parameters: SAMPLE_BYTES, CHANNELS, CONVOLVED and BORDER, as in scalar/convolve.cuh.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef short i16;
typedef int i32;
typedef long long i64;

#if SAMPLE_BYTES == 1
typedef u8 Sample;
#else
typedef u16 Sample;
#endif

// One interleaved component. The same structs are in src/engine/cuda/launch/parameters.rs.
struct Channel {
    i64 low;     // added to the sum, below one level
    i64 high;    // whole levels added after the shift; of two masks in one launch, what is added to the next one's sum
    i32 border;  // the source's value beyond the edges, where the border holds a constant
    i32 fill;    // for a component that is not convolved: its new value, or -1 to copy it
};

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

// Planes that one launch works on, one a grid layer.
struct Planes {
    Plane at[4];
    i32 shift;
    i32 max_value;  // the largest sample
};

// Where position `at` of a line of `n` pixels is found inside it; -1 where the border holds a constant. NEAR: it is beyond by less than `n`.
template <bool NEAR = false> __device__ __forceinline__ i32 border_index(i32 at, i32 n)
{
    if ((unsigned)at < (unsigned)n) {
        return at;
    }
#if BORDER == 0
    return at < 0 ? 0 : n - 1;
#elif BORDER == 1
    return -1;
#else
    // Less than a length beyond, as nearly always, no division is needed.
    const i32 beyond = at < 0 ? -1 - at : at - n;
    const i32 inside = BORDER == 4 ? (at < 0 ? n - 1 - beyond : beyond) : at < 0 ? beyond + (BORDER == 3) : n - 1 - beyond - (BORDER == 3);
    if (NEAR || (unsigned)inside < (unsigned)n) {
        return inside;
    }
    // 64 bits, since twice the length may not fit 32.
    const i64 period = BORDER == 2 ? 2 * (i64)n : BORDER == 3 ? 2 * (i64)n - 2 : (i64)n;
    if (period == 0) {
        return 0;
    }
    i64 m = at % period;
    m += m < 0 ? period : 0;
    if (BORDER == 2 && m >= n) {
        m = period - 1 - m;
    }
    if (BORDER == 3 && m >= n) {
        m = period - m;
    }
    return (i32)m;
#endif
}

constexpr bool every_channel = CONVOLVED == (1 << CHANNELS) - 1;

__device__ __forceinline__ bool is_convolved(i32 c)
{
    return every_channel || (CONVOLVED >> c & 1);
}
