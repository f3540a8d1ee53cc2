// Gaussians of floating-point samples that fit no mask: filtered on a picture that is STEP times smaller
// along each side (common/pyramid.cuh has the launches; src/filter/plan/float/pyramid.rs defines their sums).
//
// Compile-time parameters: those of the headers.
#define MASK_W 1
#define MASK_H 1
#include "float/plane.cuh"

#include "common/pyramid.cuh"

__constant__ float decimation[WINDOW];
__constant__ float low_weights[2 * RADIUS + 1];
__constant__ float interpolation[WINDOW];

// Adds weights times numbers to `sum`, in order; at(k) is the number of weight `k`.
template <i32 COUNT, class At>
__device__ __forceinline__ float weighted(const float *weights, float sum, const At &at)
{
    constexpr i32 UNROLL = COUNT == TAPS ? TAPS : 4;
#pragma unroll UNROLL
    for (i32 k = 0; k < COUNT; ++k) {
        sum = __fmaf_rn(weights[k], at(k), sum);
    }
    return sum;
}

extern "C" __global__ void __launch_bounds__(BLOCK_W *BLOCK_H)
    decimate_rows(const __grid_constant__ FloatPlanes planes, const float *)
{
    const FloatPlane &plane = planes.at[blockIdx.z];
    each_number<float>(plane, plane.width, decimated(plane.height), [&](i32 x, i32 c, i32 low) {
        const i32 top = (low + BEFORE - 3) * STEP;
        return weighted<WINDOW>(decimation, 0.0f, [&](i32 k) {
            const i32 y = border_index(top + k, plane.height);
            if (BORDER_IS_CONSTANT && y < 0) {
                return channel_of(plane, c).border;
            }
            return number_at<Sample>(plane, x, y, c);
        });
    });
}

// A channel's `border` is the result of the launch before for a column of the border's constant.
extern "C" __global__ void __launch_bounds__(BLOCK_W *BLOCK_H)
    decimate_columns(const __grid_constant__ FloatPlanes planes, const float *)
{
    const FloatPlane &plane = planes.at[blockIdx.z];
    each_number<float>(plane, decimated(plane.width), decimated(plane.height), [&](i32 low, i32 c, i32 row) {
        const float *line = numbers<float>(plane, row);
        const i32 left = (low + BEFORE - 3) * STEP;
        return weighted<WINDOW>(decimation, 0.0f, [&](i32 k) {
            const i32 x = border_index(left + k, plane.width);
            const bool outside = BORDER_IS_CONSTANT && x < 0;
            return outside ? channel_of(plane, c).border : line[x * CHANNELS + c];
        });
    });
}

extern "C" __global__ void __launch_bounds__(BLOCK_W *BLOCK_H)
    filter_rows(const __grid_constant__ FloatPlanes planes, const float *)
{
    const FloatPlane &plane = planes.at[blockIdx.z];
    each_number<float>(plane, low_pixels(plane.width), decimated(plane.height), [&](i32 x, i32 c, i32 row) {
        const float *line = numbers<float>(plane, row) + x * CHANNELS + c;
        return weighted<2 * RADIUS + 1>(low_weights, 0.0f, [&](i32 k) { return line[k * CHANNELS]; });
    });
}

extern "C" __global__ void __launch_bounds__(BLOCK_W *BLOCK_H)
    filter_columns(const __grid_constant__ FloatPlanes planes, const float *)
{
    const FloatPlane &plane = planes.at[blockIdx.z];
    each_number<float>(plane, low_pixels(plane.width), low_pixels(plane.height), [&](i32 x, i32 c, i32 row) {
        return weighted<2 * RADIUS + 1>(low_weights, 0.0f, [&](i32 k) {
            return numbers<float>(plane, row + k)[x * CHANNELS + c];
        });
    });
}

extern "C" __global__ void __launch_bounds__(BLOCK_W *BLOCK_H)
    interpolate_columns(const __grid_constant__ FloatPlanes planes, const float *)
{
    const FloatPlane &plane = planes.at[blockIdx.z];
    each_number<float>(plane, plane.width, low_pixels(plane.height), [&](i32 x, i32 c, i32 row) {
        const float *line = numbers<float>(plane, row) + x / STEP * CHANNELS + c;
        const float *weights = interpolation + x % STEP * TAPS;
        return weighted<TAPS>(weights, 0.0f, [&](i32 tap) { return line[tap * CHANNELS]; });
    });
}

extern "C" __global__ void __launch_bounds__(BLOCK_W *BLOCK_H)
    interpolate_rows(const __grid_constant__ FloatPlanes planes, const float *)
{
    const FloatPlane &plane = planes.at[blockIdx.z];
    each(plane.width, plane.height, [&](i32 x, i32 c, i32 y) {
        const float *weights = interpolation + y % STEP * TAPS;
        const float sum = weighted<TAPS>(weights, start_of(plane, c), [&](i32 tap) {
            return numbers<float>(plane, y / STEP + tap)[x * CHANNELS + c];
        });
        store_sample(planes, plane, x * CHANNELS + c, c, y, sum);
    });
}
