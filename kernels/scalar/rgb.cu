// Converts a frame to packed RGB of 8 or 16 bits, with the integers of src/engine/rgb.rs.
//
//   Y Y Y Y      R G B R G B R G B R G B     chroma is interpolated linearly between its samples
//   U   U    =>
//   V   V
//
// A thread computes four neighbouring pixels.
//
// Compile-time parameters: SAMPLE_BYTES; COMPONENTS, of the frame's colours, 1 or 3; LOG2_X, LOG2_Y, the
// subsampling of the last two; FIELDS, 1 if each row of chroma is one field's; FACTOR_BITS; BLOCK_W, BLOCK_H,
// threads of a block.
#include "common/platform/offset.cuh"
#include "common/platform/types.cuh"

#if SAMPLE_BYTES == 1
typedef u8 Sample;
#else
typedef u16 Sample;
#endif

constexpr i32 PIXELS = 4;
constexpr i32 MOST = SAMPLE_BYTES == 1 ? 255 : 65535;
// Fraction bits of positions between chroma samples, across and down.
constexpr i32 BITS_X = LOG2_X + 1;
constexpr i32 BITS_Y = LOG2_Y + 1 + FIELDS;
constexpr i32 BITS = BITS_X + BITS_Y;

// The same struct is in src/engine/cuda/launch/parameters.rs.
struct Rgb {
    const u8 *component[3];
    i64 pitch[3];  // bytes
    u8 *result;
    i64 result_pitch;
    i32 step[3];  // samples from pixel to pixel
    i32 zero[3];
    i32 factor[3][3];  // of each component in red, in green and in blue
    i32 origin[2];     // of chroma, in halves of a pixel
    i32 shift;         // padding bits below a sample
    i32 width;         // pixels
    i32 height;
};
static_assert(sizeof(Rgb) == 144);
static_assert(OFFSET(Rgb, component) == 0);
static_assert(OFFSET(Rgb, pitch) == 24);
static_assert(OFFSET(Rgb, result) == 48);
static_assert(OFFSET(Rgb, result_pitch) == 56);
static_assert(OFFSET(Rgb, step) == 64);
static_assert(OFFSET(Rgb, zero) == 76);
static_assert(OFFSET(Rgb, factor) == 88);
static_assert(OFFSET(Rgb, origin) == 124);
static_assert(OFFSET(Rgb, shift) == 132);
static_assert(OFFSET(Rgb, width) == 136);
static_assert(OFFSET(Rgb, height) == 140);

// A sample of component k above its zero.
__device__ __forceinline__ i32 sample(const Rgb &rgb, i32 k, i64 x, i64 y)
{
    const Sample *row = (const Sample *)(rgb.component[k] + y * rgb.pitch[k]);
    return (i32)(row[x * rgb.step[k]] >> rgb.shift) - rgb.zero[k];
}

// A position between two samples of a line: the indices of both, and the distance from the first.
struct Between {
    i32 first;
    i32 second;
    i32 part;
};

__device__ __forceinline__ Between between(i32 at, i32 origin, i32 bits, i32 count)
{
    const i32 place = 2 * at - origin;
    const i32 first = place >> bits;
    return {min(max(first, 0), count - 1), min(max(first + 1, 0), count - 1), place - first * (1 << bits)};
}

// Row y between two rows of chroma; in an interlaced picture those of its own field, every other one.
__device__ __forceinline__ Between rows_between(i32 y, i32 origin, i32 count)
{
    if (!FIELDS) {
        return between(y, origin, BITS_Y, count);
    }
    const i32 first = min(y & 1, count - 1);
    const Between rows = between(y, origin + first * (1 << (LOG2_Y + 1)), BITS_Y, (count + 1 - first) / 2);
    return {2 * rows.first + first, 2 * rows.second + first, rows.part};
}

// Component k interpolated at a pixel, times 2^BITS.
__device__ __forceinline__ i32 mixed(const Rgb &rgb, i32 k, const Between &x, const Between &y)
{
    const i32 left = (1 << BITS_X) - x.part;
    const i32 above = left * sample(rgb, k, x.first, y.first) + x.part * sample(rgb, k, x.second, y.first);
    const i32 below = left * sample(rgb, k, x.first, y.second) + x.part * sample(rgb, k, x.second, y.second);
    return ((1 << BITS_Y) - y.part) * above + y.part * below;
}

extern "C" __global__ void __launch_bounds__(BLOCK_W *BLOCK_H) to_rgb(const Rgb rgb)
{
    const i64 begin = ((i64)blockIdx.x * BLOCK_W + threadIdx.x) * PIXELS;
    if (begin >= rgb.width) {
        return;
    }
    const i32 pixels = min(PIXELS, rgb.width - (i32)begin);
    const i32 chroma_width = (i32)(((i64)rgb.width + (1 << LOG2_X) - 1) >> LOG2_X);
    const i32 chroma_height = (i32)(((i64)rgb.height + (1 << LOG2_Y) - 1) >> LOG2_Y);
    // The rows are a loop, since a grid's y may not exceed 65535.
    for (i64 y = (i64)blockIdx.y * BLOCK_H + threadIdx.y; y < rgb.height; y += (i64)gridDim.y * BLOCK_H) {
        const Between down = rows_between((i32)y, rgb.origin[1], chroma_height);
        u32 levels[3 * PIXELS];
#pragma unroll
        for (i32 p = 0; p < PIXELS; ++p) {
            const i32 x = (i32)begin + min(p, pixels - 1);
            i32 component[COMPONENTS];
            component[0] = sample(rgb, 0, x, y) * (1 << BITS);
            if (COMPONENTS == 3) {
                const Between across = between(x, rgb.origin[0], BITS_X, chroma_width);
#pragma unroll
                for (i32 k = 1; k < COMPONENTS; ++k) {
                    component[k] = mixed(rgb, k, across, down);
                }
            }
#pragma unroll
            for (i32 c = 0; c < 3; ++c) {
                i64 sum = (i64)1 << (BITS + FACTOR_BITS - 1);
#pragma unroll
                for (i32 k = 0; k < COMPONENTS; ++k) {
                    sum += (i64)rgb.factor[c][k] * component[k];
                }
                const i64 level = sum >> (BITS + FACTOR_BITS);
                levels[3 * p + c] = level < 0 ? 0 : level > MOST ? MOST : (u32)level;
            }
        }
        Sample *out = (Sample *)(rgb.result + y * rgb.result_pitch) + 3 * begin;
        if (pixels == PIXELS && (u64)out % 4 == 0) {
            constexpr i32 EACH = 4 / SAMPLE_BYTES;
#pragma unroll
            for (i32 word = 0; word < 3 * PIXELS / EACH; ++word) {
                u32 joined = 0;
#pragma unroll
                for (i32 k = 0; k < EACH; ++k) {
                    joined |= levels[EACH * word + k] << (8 * SAMPLE_BYTES * k);
                }
                ((u32 *)out)[word] = joined;
            }
        } else {
#pragma unroll
            for (i32 k = 0; k < 3 * PIXELS; ++k) {
                if (k < 3 * pixels) {
                    out[k] = (Sample)levels[k];
                }
            }
        }
    }
}
