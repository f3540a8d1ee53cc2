// Filters of several masks (gradients, absolute values): computes all masks' sums at each pixel in one pass
// over the tile and combines them to one number.
//
// Compile-time parameters, beside those of scalar/convolve.cuh and common/combining.cuh:
//   TOTAL  the sum of the only mask's weights; 0 for several masks, whose weights add up to 0 each
//
// A convolved channel's `fill` is its zero level here.
#include "common/combining.cuh"
#include "common/weights.cuh"
#include "scalar/convolve.cuh"

WEIGHTS(MaskWeights, i32, mask_weights, MASKS * MASK_W * MASK_H);

// A sum for each mask.
struct Sums {
    Sum of[MASKS];
};

// The weights of all masks: `add` adds a value's products to all sums.
struct AllWeights {
    typedef Sums Total;
    MaskWeights weights;

    __device__ __forceinline__ void add(Sums &sums, i32 k, i32 value) const
    {
#pragma unroll
        for (i32 m = 0; m < MASKS; ++m) {
            sums.of[m] += (Sum)weights[m * MASK_W * MASK_H + k] * value;
        }
    }
};

__device__ __forceinline__ Sum combine(const Sums &sums, i32 level)
{
    if constexpr (COMBINING == ABSOLUTE) {
        const Sum signal = sums.of[0] - (Sum)level * (Sum)TOTAL;
        return signal < 0 ? -signal : signal;
    } else if constexpr (COMBINING == LARGEST) {
        Sum most = sums.of[0];
#pragma unroll
        for (i32 m = 1; m < MASKS; ++m) {
            most = most < sums.of[m] ? sums.of[m] : most;
        }
        return most;
    } else {
        return (Sum)scaled_root((i32)sums.of[0], (i32)sums.of[MASKS - 1]);
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK_W *BLOCK_H)
    combined(const Planes planes, const i32 *weights)
{
    const Plane &plane = planes.at[blockIdx.z];
    correlate<Sample, MASK_W, MASK_H>(
        plane, AllWeights{MaskWeights{weights}}, [&](i32 sample, i32 c, i32 y, const Sums &sums) {
            const i32 level = plane.channel[CHANNELS == 1 ? 0 : c].fill;
            store_sample(planes, plane, sample, c, y, is_convolved(c) ? combine(sums, level) : 0);
        });
}
