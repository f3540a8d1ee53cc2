// The whole mask at each pixel of floating-point planes.
//
// Compile-time parameters, beside those of the headers: TILED, 1: pixels come from a tile in shared memory,
// 0: from global memory.
#include "common/weights.cuh"
#include "float/plain.cuh"
#include "float/tile.cuh"

WEIGHTS(MaskWeights, float, mask_weights, MASK_W *MASK_H);

extern "C" __global__ void __launch_bounds__(BLOCK_W *BLOCK_H)
    direct(const __grid_constant__ FloatPlanes planes, const float *weights)
{
    extern __shared__ __align__(16) float tile[];
    const FloatPlane &plane = planes.at[blockIdx.z];
    const auto bias = [&](i32 c) { return start_of(plane, c); };
    if constexpr (TILED) {
        correlate_tiles(tile, planes, plane, MaskWeights{weights}, bias,
                        [&](i32 sample, i32 y, i32 o, const Sums &sums) {
                            store_quad(planes, plane, sample, y, sums[0][o]);
                        });
    } else {
        correlate_plainly<Sample, MASK_W, MASK_H>(
            plane, MaskWeights{weights}, bias, [&](i32 sample, i32 c, i32 y, const float (&sums)[MASKS]) {
                store_sample(planes, plane, sample, c, y, sums[0]);
            });
    }
}
