// The whole mask at each pixel, with one rounding.
#include "common/weights.cuh"
#include "scalar/convolve.cuh"

WEIGHTS(MaskWeights, i32, mask_weights, MASK_W * MASK_H);

extern "C" __global__ void __launch_bounds__(BLOCK_W *BLOCK_H) direct(const Planes planes, const i32 *weights)
{
    const Plane &plane = planes.at[blockIdx.z];
    correlate<Sample, MASK_W, MASK_H>(plane, OneMask<MaskWeights>{{weights}},
                                      [&](i32 sample, i32 c, i32 y, Sum sum) {
                                          store_sample(planes, plane, sample, c, y, sum);
                                      });
}
