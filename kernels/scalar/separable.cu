// A row pass into an intermediate in device memory, then a column pass.
//
// They are two launches. A column reads rows that other blocks made, and a barrier holds back only the
// threads of one block; the end of a launch is what all blocks wait for. One launch with only __syncthreads
// between the passes would be a race.
#include "scalar/convolve.cuh"
#include "scalar/weights.cuh"

WEIGHTS(RowWeights, row_weights, MASK_W);
WEIGHTS(ColumnWeights, column_weights, MASK_H);

// `result` is the intermediate. Its rows are the plane's: what a row outside it holds follows from the
// border when it is read.
extern "C" __global__ void __launch_bounds__(BLOCK_W *BLOCK_H)
    row_pass(const Planes planes, const i32 *weights)
{
    const Plane &plane = planes.at[blockIdx.z];
    const i32 shift = planes.shift;
    const Sum start = (Sum)planes.start;
    correlate<Sample, MASK_W, 1>(plane, RowWeights{weights}, [&](i32 sample, i32 c, i32 y, Sum sum) {
        Intermediate *out = (Intermediate *)(plane.result + (i64)y * plane.result_pitch) + sample;
        *out = (Intermediate)((sum + start) >> shift);
    });
}

// `source` is the intermediate; a channel's `border` is what the row pass makes of constant pixels.
extern "C" __global__ void __launch_bounds__(BLOCK_W *BLOCK_H)
    column_pass(const Planes planes, const i32 *weights)
{
    const Plane &plane = planes.at[blockIdx.z];
    correlate<Intermediate, 1, MASK_H>(plane, ColumnWeights{weights}, [&](i32 sample, i32 c, i32 y, Sum sum) {
        store_sample(planes, plane, sample, c, y, sum);
    });
}
