// The whole mask at each pixel, one rounding.
#include "scalar/convolve.cuh"

#if CONSTANT_WEIGHTS
// Belongs to this module alone: each step of a chain has a module of its own, so no step can overwrite
// another's weights.
__constant__ i32 mask_weights[MASK_W * MASK_H];
#endif

struct MaskWeights {
    const i32 *global;
    __device__ __forceinline__ i32 operator[](i32 k) const
    {
#if CONSTANT_WEIGHTS
        return mask_weights[k];
#else
        return __ldg(global + k);
#endif
    }
};

extern "C" __global__ void __launch_bounds__(BLOCK_W *BLOCK_H) direct(const Planes planes, const i32 *weights)
{
    const Plane &plane = planes.at[blockIdx.z];
    correlate<Sample, MASK_W, MASK_H>(plane, MaskWeights{weights}, [&](i32 sample, i32 c, i32 y, Sum sum) {
        store_sample(planes, plane, sample, c, y, sum);
    });
}
