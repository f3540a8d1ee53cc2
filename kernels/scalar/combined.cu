// Filters of several masks (gradients, absolute values): the masks' sums at each pixel, in one pass over the
// tile, and one number made of them.
//
// Compile-time parameters, beside those of scalar/convolve.cuh:
//   MASKS            masks of MASK_W x MASK_H
//   COMBINING        as below
//   TOTAL            what the weights of the only mask add up to; 0 for several, which add up to 0 each
//   SCALE_N, SCALE_D what a root is multiplied by, as a fraction
//   MOST_SQUARES     larger sums of squares give the largest number that matters
//
// A convolved channel's `fill` is its zero level here.
#include "scalar/convolve.cuh"
#include "scalar/weights.cuh"

enum Combining {
    ABSOLUTE = 0,
    LARGEST = 1,
    MAGNITUDE = 2,
};

WEIGHTS(MaskWeights, mask_weights, MASKS * MASK_W * MASK_H);

// A sum for each mask.
struct Sums {
    Sum of[MASKS];
};

// The weights of all masks, which add to all sums what one value counts.
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

// True if n/d sqrt(squares) is at least number - 1/2: (2 number - 1)^2 d^2 <= 4 n^2 squares. `squares` is at
// most MOST_SQUARES, so that both sides fit 64 bits.
__device__ __forceinline__ bool reaches(u64 squares, i32 number)
{
    const u64 edge = (u64)(2 * number - 1) * SCALE_D;
    return number <= 0 || edge * edge <= 4 * (u64)SCALE_N * SCALE_N * squares;
}

// n/d sqrt(squares), rounded half up.
__device__ __forceinline__ i32 scaled_root(u64 squares)
{
    constexpr u64 most = MOST_SQUARES;
    squares = squares < most ? squares : most;
    // Off by far less than 1 for results of up to 17 bits, so that the number is this one or a neighbour.
    const i32 near = (i32)(__fsqrt_rn((float)squares) * ((float)SCALE_N / (float)SCALE_D) + 0.5f);
    return near + (i32)reaches(squares, near + 1) - (i32)!reaches(squares, near);
}

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
        const i64 a = sums.of[0], b = sums.of[MASKS - 1];
        return (Sum)scaled_root((u64)(a * a + b * b));
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
