// Gaussians that fit no mask, of a picture that is STEP times smaller along each side
// (src/filter/pyramid.rs).
//
//   samples             W x H
//      | decimate_rows            every STEP-th row              W x (h + 2 RADIUS)
//      | decimate_columns         every STEP-th column           (w + 2 RADIUS) x (h + 2 RADIUS)
//      | filter_rows              the low filter along rows      w x (h + 2 RADIUS)
//      | filter_columns           and along columns              w x h
//      | interpolate_columns      all columns                    W x h
//      | interpolate_rows         all rows, samples again        W x H
//
// w and h are the low pixels that results are interpolated from: from the second before the one on or before
// the first pixel to the third behind the one on or before the last. Each is a launch, since it reads what
// other blocks of the one before have made. Between them numbers take 32 bits.
//
// Compile-time parameters: those of scalar/convolve.cuh, and
//   STEP, RADIUS   pixels from a low pixel to the next, low pixels on each side that the low filter reads
//   ROWS_SHIFT     bits that the first launch's sums are shifted down by
//   NUMBER_SHIFT   those of all others
//   FRACTION       fraction bits of the numbers
#include "scalar/convolve.cuh"

// Low pixels that a pixel is interpolated from.
constexpr i32 TAPS = 6;
// Pixels that a low pixel is decimated from.
constexpr i32 WINDOW = TAPS * STEP;
// The first low pixel that results are interpolated from, and the first that it is filtered from.
constexpr i32 FIRST = -2;
constexpr i32 BEFORE = FIRST - RADIUS;

__constant__ i32 row_weights[WINDOW];
__constant__ i32 column_weights[WINDOW];
__constant__ i32 low_weights[2 * RADIUS + 1];
__constant__ i32 interpolation[WINDOW];

// Low pixels that a side of `n` pixels is interpolated from, and that those are filtered from.
__device__ __forceinline__ i32 low_pixels(i32 n)
{
    return (n - 1) / STEP + TAPS;
}
__device__ __forceinline__ i32 decimated(i32 n)
{
    return low_pixels(n) + 2 * RADIUS;
}

__device__ __forceinline__ i32 rounded(Sum sum, i32 shift)
{
    return (i32)((sum + (((Sum)1 << shift) >> 1)) >> shift);
}

__device__ __forceinline__ const i32 *numbers(const Plane &plane, i32 row)
{
    return (const i32 *)(plane.source + (i64)row * plane.source_pitch);
}

__device__ __forceinline__ i32 constant(const Plane &plane, i32 c)
{
    return plane.channel[CHANNELS == 1 ? 0 : c].border;
}

// Calls make(x, c, row) for each number of a grid of so many pixels and rows, one a thread.
template <class Make> __device__ __forceinline__ void each(i32 pixels, i32 rows, const Make &make)
{
    const i32 at = (i32)blockIdx.x * BLOCK_W + (i32)threadIdx.x;
    if (at >= pixels * CHANNELS) {
        return;
    }
    // The rows are a loop, since a grid's y may not exceed 65535.
    for (i64 row = (i64)blockIdx.y * BLOCK_H + threadIdx.y; row < rows; row += (i64)gridDim.y * BLOCK_H) {
        make(at / CHANNELS, at % CHANNELS, (i32)row);
    }
}

// The same, where what is made is a number of the result.
template <class Make> __device__ __forceinline__ void each_number(const Plane &plane, i32 pixels, i32 rows,
                                                                  const Make &make)
{
    each(pixels, rows, [&](i32 x, i32 c, i32 row) {
        i32 *out = (i32 *)(plane.result + (i64)row * plane.result_pitch);
        out[x * CHANNELS + c] = make(x, c, row);
    });
}

extern "C" __global__ void __launch_bounds__(BLOCK_W *BLOCK_H)
    decimate_rows(const Planes planes, const i32 *)
{
    const Plane &plane = planes.at[blockIdx.z];
    each_number(plane, plane.width, decimated(plane.height), [&](i32 x, i32 c, i32 low) {
        const i32 top = (low + BEFORE - 3) * STEP;
        i32 sum = 0;
#pragma unroll 4
        for (i32 k = 0; k < WINDOW; ++k) {
            const i32 y = border_index(top + k, plane.height);
            const bool outside = BORDER_IS_CONSTANT && y < 0;
            sum += row_weights[k] *
                   (outside ? constant(plane, c) : read_global<Sample>(plane, x * CHANNELS + c, y));
        }
        return (sum + ((1 << ROWS_SHIFT) >> 1)) >> ROWS_SHIFT;
    });
}

extern "C" __global__ void __launch_bounds__(BLOCK_W *BLOCK_H)
    decimate_columns(const Planes planes, const i32 *)
{
    const Plane &plane = planes.at[blockIdx.z];
    each_number(plane, decimated(plane.width), decimated(plane.height), [&](i32 low, i32 c, i32 row) {
        const i32 *line = numbers(plane, row);
        const i32 left = (low + BEFORE - 3) * STEP;
        Sum sum = 0;
#pragma unroll 4
        for (i32 k = 0; k < WINDOW; ++k) {
            const i32 x = border_index(left + k, plane.width);
            const bool outside = BORDER_IS_CONSTANT && x < 0;
            sum += (Sum)column_weights[k] *
                   (outside ? constant(plane, c) << FRACTION : line[x * CHANNELS + c]);
        }
        return rounded(sum, NUMBER_SHIFT);
    });
}

extern "C" __global__ void __launch_bounds__(BLOCK_W *BLOCK_H)
    filter_rows(const Planes planes, const i32 *)
{
    const Plane &plane = planes.at[blockIdx.z];
    each_number(plane, low_pixels(plane.width), decimated(plane.height), [&](i32 x, i32 c, i32 row) {
        const i32 *line = numbers(plane, row) + x * CHANNELS + c;
        Sum sum = 0;
        for (i32 k = 0; k <= 2 * RADIUS; ++k) {
            sum += (Sum)low_weights[k] * line[k * CHANNELS];
        }
        return rounded(sum, NUMBER_SHIFT);
    });
}

extern "C" __global__ void __launch_bounds__(BLOCK_W *BLOCK_H)
    filter_columns(const Planes planes, const i32 *)
{
    const Plane &plane = planes.at[blockIdx.z];
    each_number(plane, low_pixels(plane.width), low_pixels(plane.height), [&](i32 x, i32 c, i32 row) {
        Sum sum = 0;
        for (i32 k = 0; k <= 2 * RADIUS; ++k) {
            sum += (Sum)low_weights[k] * numbers(plane, row + k)[x * CHANNELS + c];
        }
        return rounded(sum, NUMBER_SHIFT);
    });
}

extern "C" __global__ void __launch_bounds__(BLOCK_W *BLOCK_H)
    interpolate_columns(const Planes planes, const i32 *)
{
    const Plane &plane = planes.at[blockIdx.z];
    each_number(plane, plane.width, low_pixels(plane.height), [&](i32 x, i32 c, i32 row) {
        const i32 *line = numbers(plane, row) + x / STEP * CHANNELS + c;
        const i32 *weights = interpolation + x % STEP * TAPS;
        Sum sum = 0;
#pragma unroll
        for (i32 tap = 0; tap < TAPS; ++tap) {
            sum += (Sum)weights[tap] * line[tap * CHANNELS];
        }
        return rounded(sum, NUMBER_SHIFT);
    });
}

extern "C" __global__ void __launch_bounds__(BLOCK_W *BLOCK_H)
    interpolate_rows(const Planes planes, const i32 *)
{
    const Plane &plane = planes.at[blockIdx.z];
    each(plane.width, plane.height, [&](i32 x, i32 c, i32 y) {
        const i32 *weights = interpolation + y % STEP * TAPS;
        Sum sum = 0;
#pragma unroll
        for (i32 tap = 0; tap < TAPS; ++tap) {
            sum += (Sum)weights[tap] * numbers(plane, y / STEP + tap)[x * CHANNELS + c];
        }
        store_sample(planes, plane, x * CHANNELS + c, c, y, sum);
    });
}
