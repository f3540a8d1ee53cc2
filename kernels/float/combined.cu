// Filters of several masks (gradients, absolute values) of floating-point planes: computes all masks' sums at
// each pixel and combines them to one number.
//
// Compile-time parameters, beside those of the headers:
//   TILED      as in float/direct.cu
//   COMBINING  as in common/enums.cuh
#include "common/enums.cuh"
#include "common/weights.cuh"
#include "float/plain.cuh"
#include "float/tile.cuh"

WEIGHTS(MaskWeights, float, mask_weights, MASKS *MASK_W *MASK_H);

__device__ __forceinline__ float combine(const float (&sums)[MASKS], float scale, float bias)
{
    float one = sums[0];
    if constexpr (COMBINING == ABSOLUTE) {
        one = fabsf(one);
    } else if constexpr (COMBINING == LARGEST) {
#pragma unroll
        for (i32 m = 1; m < MASKS; ++m) {
            one = sums[m] > one || sums[m] != sums[m] ? sums[m] : one;
        }
    } else {
        const float other = sums[MASKS - 1];
        one = __fmul_rn(__fsqrt_rn(__fmaf_rn(other, other, __fmul_rn(one, one))), scale);
    }
    return __fadd_rn(one, bias);
}

extern "C" __global__ void __launch_bounds__(BLOCK_W *BLOCK_H)
    combined(const __grid_constant__ FloatPlanes planes, const float *weights)
{
    extern __shared__ __align__(16) float tile[];
    const FloatPlane &plane = planes.at[blockIdx.z];
    const auto zero = [](i32) { return 0.0f; };
    if constexpr (TILED) {
        correlate_tiles(tile, planes, plane, MaskWeights{weights}, zero,
                        [&](i32 sample, i32 y, i32 o, const Sums &sums) {
                            float made[4];
#pragma unroll
                            for (i32 v = 0; v < 4; ++v) {
                                float mine[MASKS];
#pragma unroll
                                for (i32 m = 0; m < MASKS; ++m) {
                                    mine[m] = sums[m][o][v];
                                }
                                const float bias = start_of(plane, (sample + v) % CHANNELS);
                                made[v] = combine(mine, planes.scale, bias);
                            }
                            store_quad(planes, plane, sample, y, made);
                        });
    } else {
        correlate_plainly<Sample, MASK_W, MASK_H>(
            plane, MaskWeights{weights}, zero, [&](i32 sample, i32 c, i32 y, const float (&sums)[MASKS]) {
                const float one = combine(sums, planes.scale, start_of(plane, c));
                store_sample(planes, plane, sample, c, y, one);
            });
    }
}
