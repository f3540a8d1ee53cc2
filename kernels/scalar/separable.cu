// A row pass into an intermediate in device memory, then a column pass.
//
// They are two launches, since a column reads rows that other blocks have written: __syncthreads() waits for
// the threads of one block only, the end of a launch for all blocks.
#include "common/weights.cuh"
#include "scalar/convolve.cuh"

WEIGHTS(RowWeights, i32, row_weights, MASK_W);
WEIGHTS(ColumnWeights, i32, column_weights, MASK_H);

// `result` is the intermediate. It has the plane's rows; the column pass applies the border when it reads.
extern "C" __global__ void __launch_bounds__(BLOCK_W *BLOCK_H)
    row_pass(const Planes planes, const i32 *weights)
{
    const Plane &plane = planes.at[blockIdx.z];
    const i32 shift = planes.shift;
    const Sum start = (Sum)planes.start;
    const OneMask<RowWeights> mask{{weights}};
    correlate<Sample, MASK_W, 1>(plane, mask, [&](i32 sample, i32 c, i32 y, Sum sum) {
        Intermediate *out = (Intermediate *)(plane.result + (i64)y * plane.result_pitch) + sample;
        *out = (Intermediate)((sum + start) >> shift);
    });
}

// `source` is the intermediate; a channel's `border` is the row pass's result for pixels of the constant.
extern "C" __global__ void __launch_bounds__(BLOCK_W *BLOCK_H)
    column_pass(const Planes planes, const i32 *weights)
{
    const Plane &plane = planes.at[blockIdx.z];
    const OneMask<ColumnWeights> mask{{weights}};
    correlate<Intermediate, 1, MASK_H>(plane, mask, [&](i32 sample, i32 c, i32 y, Sum sum) {
        store_sample(planes, plane, sample, c, y, sum);
    });
}
