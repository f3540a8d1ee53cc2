// Colour under straight alpha: multiplied by alpha before the convolution and divided after it, as 32-bit
// floats for all kinds of samples. A thread takes one column of pixels. Levels are multiplied by the
// convolution kernels themselves.
//
// Compile-time parameters, beside LEVELS, SAMPLE_BYTES, SAMPLE_SHIFT and THRESHOLD: CHANNELS, components that
// lie interleaved in a plane; COMPONENTS, all of them; ALPHA, which of them is alpha; CONVOLVED, a bit for
// each whose sums were made; FILTERED, a bit for each whose result is stored.
// float/plane.cuh asks for a border and a mask. Here neither is used: no pixel reads its neighbours.
#define BORDER REPLICATE
#define MASK_W 1
#define MASK_H 1
#include "float/plane.cuh"

// A plane of the picture before the step, of colour times alpha, of what the convolution made of that, and of
// the result. The same structs are in src/engine/cuda/launch/float/parameters.rs.
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
    float bias[4];  // of each component: added after the division by alpha
    i32 fill[4];    // of each component that is not filtered: its new level, or -1 to copy it
    float gain;
    float threshold;
    float most;  // the largest level
    i32 width;
    i32 height;
    i32 normalise;     // 1: colours are divided by the convolved alpha, 0: by the result's
    i32 filter_alpha;  // 1: the result's alpha is the convolved one, 0: the one from before
    i32 unused;
};
static_assert(sizeof(FloatPicture) == 320);
static_assert(OFFSET(FloatPicture, at) == 0);
static_assert(OFFSET(FloatPicture, bias) == 256);
static_assert(OFFSET(FloatPicture, fill) == 272);
static_assert(OFFSET(FloatPicture, gain) == 288);
static_assert(OFFSET(FloatPicture, threshold) == 292);
static_assert(OFFSET(FloatPicture, most) == 296);
static_assert(OFFSET(FloatPicture, width) == 300);
static_assert(OFFSET(FloatPicture, height) == 304);
static_assert(OFFSET(FloatPicture, normalise) == 308);
static_assert(OFFSET(FloatPicture, filter_alpha) == 312);

// The address of component `k` of pixel (x, y).
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

// The number that is stored; levels are rounded down.
__device__ __forceinline__ float result_of(float number, float most)
{
#if LEVELS
    return level_of(number, most);
#else
    return number;
#endif
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
            of_result = !picture.filter_alpha ? was
                        : LEVELS              ? result_of(__fadd_rn(made, 0.5f), picture.most)
                                              : made;
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
                value = divisor == 0.0f ? value_of(original)
                                        : result_of(__fadd_rn(divided, picture.bias[k]), picture.most);
            }
            store_result(*to, value, original, FILTERED >> k & 1, picture.threshold);
            if (LEVELS && !(FILTERED >> k & 1) && picture.fill[k] >= 0) {
                store(*to, (float)picture.fill[k]);
            }
        }
    }
}
