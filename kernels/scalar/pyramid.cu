// Gaussians that fit no mask: filtered on a picture that is STEP times smaller along each side
// (common/pyramid.cuh has the launches).
//
// Compile-time parameters: those of scalar/convolve.cuh and common/pyramid.cuh, and
//   ROWS_SHIFT     bits that the first launch's sums are shifted right by
//   NUMBER_SHIFT   the same of all other launches
//   FRACTION       fraction bits of the numbers
#include "common/pyramid.cuh"
#include "scalar/convolve.cuh"

__constant__ i32 row_weights[WINDOW];
__constant__ i32 column_weights[WINDOW];
__constant__ i32 low_weights[2 * RADIUS + 1];
__constant__ i32 interpolation[WINDOW];

__device__ __forceinline__ i32 rounded(Sum sum, i32 shift)
{
    return (i32)((sum + (((Sum)1 << shift) >> 1)) >> shift);
}

__device__ __forceinline__ i32 constant(const Plane &plane, i32 c)
{
    return plane.channel[CHANNELS == 1 ? 0 : c].border;
}

extern "C" __global__ void __launch_bounds__(BLOCK_W *BLOCK_H)
    decimate_rows(const Planes planes, const i32 *)
{
    const Plane &plane = planes.at[blockIdx.z];
    each_number<i32>(plane, plane.width, decimated(plane.height), [&](i32 x, i32 c, i32 low) {
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
    each_number<i32>(plane, decimated(plane.width), decimated(plane.height), [&](i32 low, i32 c, i32 row) {
        const i32 *line = numbers<i32>(plane, row);
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
    each_number<i32>(plane, low_pixels(plane.width), decimated(plane.height), [&](i32 x, i32 c, i32 row) {
        const i32 *line = numbers<i32>(plane, row) + x * CHANNELS + c;
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
    each_number<i32>(plane, low_pixels(plane.width), low_pixels(plane.height), [&](i32 x, i32 c, i32 row) {
        Sum sum = 0;
        for (i32 k = 0; k <= 2 * RADIUS; ++k) {
            sum += (Sum)low_weights[k] * numbers<i32>(plane, row + k)[x * CHANNELS + c];
        }
        return rounded(sum, NUMBER_SHIFT);
    });
}

extern "C" __global__ void __launch_bounds__(BLOCK_W *BLOCK_H)
    interpolate_columns(const Planes planes, const i32 *)
{
    const Plane &plane = planes.at[blockIdx.z];
    each_number<i32>(plane, plane.width, low_pixels(plane.height), [&](i32 x, i32 c, i32 row) {
        const i32 *line = numbers<i32>(plane, row) + x / STEP * CHANNELS + c;
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
            sum += (Sum)weights[tap] * numbers<i32>(plane, y / STEP + tap)[x * CHANNELS + c];
        }
        store_sample(planes, plane, x * CHANNELS + c, c, y, sum);
    });
}
