// Floating-point colour under straight alpha: multiplied before the convolution, divided after it, in numbers
// of 32 bits whatever samples have. One thread takes a pixel.
//
// Compile-time parameters, beside SAMPLE_BYTES and THRESHOLD: CHANNELS, components that lie interleaved in a
// plane; COMPONENTS, all of them; ALPHA, which of them is alpha; CONVOLVED, a bit for each that is convolved.
#define BORDER 0
#define MASK_W 1
#define MASK_H 1
#include "float/plane.cuh"

// A plane of the picture before the step, of colour times alpha, of what the convolution made of that, and of
// the result. The same structs are in src/engine/cuda/launch/float_parameters.rs.
struct FloatRows {
    const u8 *before;
    u8 *weighted;
    const u8 *convolved;
    u8 *after;
    i64 before_pitch;  // bytes
    i64 weighted_pitch;
    i64 convolved_pitch;
    i64 after_pitch;
};
static_assert(sizeof(FloatRows) == 64);
static_assert(OFFSET(FloatRows, before) == 0);
static_assert(OFFSET(FloatRows, weighted) == 8);
static_assert(OFFSET(FloatRows, convolved) == 16);
static_assert(OFFSET(FloatRows, after) == 24);
static_assert(OFFSET(FloatRows, before_pitch) == 32);
static_assert(OFFSET(FloatRows, weighted_pitch) == 40);
static_assert(OFFSET(FloatRows, convolved_pitch) == 48);
static_assert(OFFSET(FloatRows, after_pitch) == 56);

struct FloatPicture {
    FloatRows at[4];
    float gain;
    float bias;
    float threshold;
    i32 width;
    i32 height;
    i32 normalise;     // 1: colours are divided by the convolved alpha, 0: by the result's
    i32 filter_alpha;  // 1: the result's alpha is the convolved one, 0: the one from before
    i32 unused;
};
static_assert(sizeof(FloatPicture) == 288);
static_assert(OFFSET(FloatPicture, at) == 0);
static_assert(OFFSET(FloatPicture, gain) == 256);
static_assert(OFFSET(FloatPicture, bias) == 260);
static_assert(OFFSET(FloatPicture, threshold) == 264);
static_assert(OFFSET(FloatPicture, width) == 268);
static_assert(OFFSET(FloatPicture, height) == 272);
static_assert(OFFSET(FloatPicture, normalise) == 276);
static_assert(OFFSET(FloatPicture, filter_alpha) == 280);

// Component `k` of pixel (x, y).
template <class Stored>
__device__ __forceinline__ Stored *place(const u8 *plane, i64 pitch, i32 x, i32 y, i32 k)
{
    return (Stored *)(plane + (i64)y * pitch) + (x * CHANNELS + k % CHANNELS);
}

__device__ __forceinline__ const Sample &before(const FloatPicture &picture, i32 x, i32 y, i32 k)
{
    const FloatRows &rows = picture.at[k / CHANNELS];
    return *place<const Sample>(rows.before, rows.before_pitch, x, y, k);
}

extern "C" __global__ void __launch_bounds__(256) premultiply(const __grid_constant__ FloatPicture picture)
{
    const i32 x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= picture.width) {
        return;
    }
    for (i32 y = blockIdx.y; y < picture.height; y += gridDim.y) {
        const float alpha = value_of(before(picture, x, y, ALPHA));
#pragma unroll
        for (i32 k = 0; k < COMPONENTS; ++k) {
            if (CONVOLVED >> k & 1) {
                const FloatRows &rows = picture.at[k / CHANNELS];
                float *to = place<float>(rows.weighted, rows.weighted_pitch, x, y, k);
                *to = k == ALPHA ? alpha : __fmul_rn(value_of(before(picture, x, y, k)), alpha);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(256) unpremultiply(const __grid_constant__ FloatPicture picture)
{
    const i32 x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= picture.width) {
        return;
    }
    const auto convolved = [&](i32 y, i32 k) {
        const FloatRows &rows = picture.at[k / CHANNELS];
        return *place<const float>(rows.convolved, rows.convolved_pitch, x, y, k);
    };
    for (i32 y = blockIdx.y; y < picture.height; y += gridDim.y) {
        const float was = value_of(before(picture, x, y, ALPHA));
        float of_result = was, divisor = was;
        if constexpr (CONVOLVED >> ALPHA & 1) {
            const float made = convolved(y, ALPHA);
            of_result = picture.filter_alpha ? made : was;
            divisor = picture.normalise ? made : of_result;
        }
#pragma unroll
        for (i32 k = 0; k < COMPONENTS; ++k) {
            const FloatRows &rows = picture.at[k / CHANNELS];
            Sample *to = place<Sample>(rows.after, rows.after_pitch, x, y, k);
            const Sample &original = before(picture, x, y, k);
            float value = of_result;
            if ((CONVOLVED >> k & 1) && k != ALPHA) {
                const float divided = __fdiv_rn(__fmul_rn(convolved(y, k), picture.gain), divisor);
                value = divisor == 0.0f ? value_of(original) : __fadd_rn(divided, picture.bias);
            }
            store_result(*to, value, original, CONVOLVED >> k & 1, picture.threshold);
        }
    }
}
