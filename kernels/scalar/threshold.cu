// Restores samples that a step changes by less than its threshold. Works in place on the result: a sample is
// read and written by the same thread.
//
// Compile-time parameters: SAMPLE_BYTES, CHANNELS and CONVOLVED, as in scalar/convolve.cuh; BLOCK_W, BLOCK_H,
// threads of a block; LEAST, the least difference that is kept, in units of stored samples, padding bits
// included. A plane's `source` is the result, its `original` the picture before the step.
#include "common/plane.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_W *BLOCK_H) threshold(const Planes planes)
{
    const Plane &plane = planes.at[blockIdx.z];
    const i32 sample = (i32)blockIdx.x * BLOCK_W + (i32)threadIdx.x;
    if (sample >= plane.width * CHANNELS || !is_convolved(sample % CHANNELS)) {
        return;
    }
    // The rows are a loop, since a grid's y may not exceed 65535.
    for (i64 y = (i64)blockIdx.y * BLOCK_H + threadIdx.y; y < plane.height; y += (i64)gridDim.y * BLOCK_H) {
        Sample *out = (Sample *)(plane.result + y * plane.result_pitch) + sample;
        const i32 before = ((const Sample *)(plane.original + y * plane.original_pitch))[sample];
        const i32 difference = (i32)*out - before;
        if (difference < LEAST && difference > -LEAST) {
            *out = (Sample)before;
        }
    }
}
