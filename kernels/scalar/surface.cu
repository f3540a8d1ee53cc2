// Converts a decoder's surface to the planes of a frame: deinterleaves chroma, and shifts samples of more
// than eight bits, which a surface holds in the high bits of 16, to the low bits.
//
//   surface   Y Y Y Y Y Y Y Y      frame   Y Y Y Y Y Y Y Y
//             U V U V U V U V              U U U U   V V V V
//
// A thread takes 16 bytes of two rows of luma and of the row of chroma that belongs to them. Rows are padded
// to more than 16 bytes on both sides, so that the last thread of a row may go beyond its end.
//
// Compile-time parameters: SAMPLE_BYTES; SHIFT, unused low bits of a surface's sample.
#include "common/platform/offset.cuh"

typedef unsigned char u8;
typedef unsigned int u32;
typedef int i32;
typedef long long i64;

constexpr i32 BYTES = 16;

// The same struct is in src/engine/cuda/launch/parameters.rs.
struct Surface {
    const u8 *luma;
    const u8 *chroma;
    i64 luma_pitch;  // bytes
    i64 chroma_pitch;
    u8 *plane[3];
    i64 pitch[3];
    i32 width;  // pixels
    i32 height;
};
static_assert(sizeof(Surface) == 88);
static_assert(OFFSET(Surface, luma) == 0);
static_assert(OFFSET(Surface, chroma) == 8);
static_assert(OFFSET(Surface, luma_pitch) == 16);
static_assert(OFFSET(Surface, chroma_pitch) == 24);
static_assert(OFFSET(Surface, plane) == 32);
static_assert(OFFSET(Surface, pitch) == 56);
static_assert(OFFSET(Surface, width) == 80);
static_assert(OFFSET(Surface, height) == 84);

// A word's samples, shifted to the low bits.
__device__ __forceinline__ u32 lowered(u32 word)
{
#if SAMPLE_BYTES == 1
    return word;
#else
    return word >> SHIFT & (0xffffu >> SHIFT) * 0x10001u;
#endif
}

__device__ __forceinline__ uint4 lowered(uint4 words)
{
    words.x = lowered(words.x);
    words.y = lowered(words.y);
    words.z = lowered(words.z);
    words.w = lowered(words.w);
    return words;
}

extern "C" __global__ void __launch_bounds__(256) to_planes(const Surface surface)
{
    constexpr u32 FIRST = SAMPLE_BYTES == 1 ? 0x6420 : 0x5410;
    constexpr u32 SECOND = SAMPLE_BYTES == 1 ? 0x7531 : 0x7632;
    const i64 x = ((i64)blockIdx.x * blockDim.x + threadIdx.x) * BYTES;
    const i32 chroma_rows = (surface.height + 1) / 2;
    if (x >= (i64)(surface.width + 1) / 2 * 2 * SAMPLE_BYTES) {
        return;
    }
    // The rows are a loop, since a grid's y may not exceed 65535.
    for (i64 y = blockIdx.y; y < chroma_rows; y += gridDim.y) {
#pragma unroll
        for (i32 k = 0; k < 2; ++k) {
            const i64 row = 2 * y + k;
            if (row < surface.height) {
                const uint4 luma = *(const uint4 *)(surface.luma + row * surface.luma_pitch + x);
                *(uint4 *)(surface.plane[0] + row * surface.pitch[0] + x) = lowered(luma);
            }
        }
        const uint4 pairs = lowered(*(const uint4 *)(surface.chroma + y * surface.chroma_pitch + x));
        *(uint2 *)(surface.plane[1] + y * surface.pitch[1] + x / 2) =
            make_uint2(__byte_perm(pairs.x, pairs.y, FIRST), __byte_perm(pairs.z, pairs.w, FIRST));
        *(uint2 *)(surface.plane[2] + y * surface.pitch[2] + x / 2) =
            make_uint2(__byte_perm(pairs.x, pairs.y, SECOND), __byte_perm(pairs.z, pairs.w, SECOND));
    }
}
