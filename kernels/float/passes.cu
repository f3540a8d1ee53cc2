// Row pass and column pass of floating-point planes as two launches, with an intermediate of 32 bits in
// device memory: for any number of channels.
#include "common/weights.cuh"
#include "float/plain.cuh"

WEIGHTS(RowWeights, float, row_weights, MASK_W);
WEIGHTS(ColumnWeights, float, column_weights, MASK_H);

// `result` is the intermediate. It has the plane's rows; the column pass applies the border when it reads.
extern "C" __global__ void __launch_bounds__(BLOCK_W *BLOCK_H)
    row_pass(const __grid_constant__ FloatPlanes planes, const float *weights)
{
    const FloatPlane &plane = planes.at[blockIdx.z];
    correlate_plainly<Sample, MASK_W, 1>(
        plane, RowWeights{weights}, [](i32) { return 0.0f; },
        [&](i32 sample, i32, i32 y, const float (&sums)[MASKS]) {
            *((float *)(plane.result + (i64)y * plane.result_pitch) + sample) = sums[0];
        });
}

// `source` is the intermediate; a channel's `border` is the row pass's result for pixels of the constant.
extern "C" __global__ void __launch_bounds__(BLOCK_W *BLOCK_H)
    column_pass(const __grid_constant__ FloatPlanes planes, const float *weights)
{
    const FloatPlane &plane = planes.at[blockIdx.z];
    correlate_plainly<float, 1, MASK_H>(
        plane, ColumnWeights{weights}, [&](i32 c) { return start_of(plane, c); },
        [&](i32 sample, i32 c, i32 y, const float (&sums)[MASKS]) {
            store_sample(planes, plane, sample, c, y, sums[0]);
        });
}
