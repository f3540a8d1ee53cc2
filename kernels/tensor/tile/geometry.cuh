// How a tile of a plane lies in shared memory: its rows, their halo, and where a lane finds bytes in it.
// docs/gpu-kernels.md has the pictures.
//
//   stage       |<------------------ PITCH, or ALIGNED_PITCH ----------------->|
//   row 0       | unused | REACH |  TILE_W bytes of results  | REACH | .. early |
//   row 1       |<---- LEFT ---->|                                              |
//   ..                                                          ROWS rows: TILE_H and MASK_H - 1
//   stage 1     at STAGE bytes from stage 0: the tile that is loaded meanwhile
//
// Compile-time parameters (given by src/engine/cuda/kernels/tensor/shape.rs), beside those of
// common/plane.cuh:
//   SAMPLE_SHIFT    unused low bits of a stored sample
//   WIDE            1: sums take 64 bits
//   DIVIDES         1: sums, which stay below 2^31 then, are divided by a multiplication; 0: by a shift
//   MASK_W, MASK_H  columns and rows of the mask, or of what two masks reach together
//   SAME_BIAS       1: all components of a plane add the same bias
//   BANDS           sums of byte products that make up one sum: sum = (band 0 * 256 + band 1) * 256 + ...
//   TILE_W, TILE_H  bytes across and rows that a block computes at a time
//   ROWS            rows that are loaded of a tile with its halo
//   PITCH           bytes from row to row; CHUNKS: 16-byte pieces that are loaded of a row
//   ALIGNED_PITCH, ALIGNED_CHUNKS  the same in an ALIGNED launch
//   STAGE           bytes from one tile to where another, or its components, may begin, with room for what is
//                   read beyond the last row; a multiple of 128, as tiles that are copied by one instruction
//                   need it
//   LEFT            bytes of a tile's row before its first result
//   WARPS_X, WARPS  warps of a block beside each other, and all of them; BLOCKS: blocks on a multiprocessor
//                   to aim at
//   LOADER          how tiles come to shared memory: one of the three below
//   DEINTERLEAVE    1: a tile's pixels are deinterleaved in shared memory before the products, into the
//                   low bytes of each component, and the high ones after them; so bands have no gaps, and are
//                   those of bytes
//   PART, PART_PITCH  then, bytes from one part's rows to the next one's, and from row to row
//
// A tile's rows begin at a multiple of 16 bytes of memory, so that they can be copied in pieces of 16. In an
// ALIGNED launch all rows begin at such a multiple themselves; otherwise the last word of a tile's row says
// how many bytes too early the row begins. What a lane reads beyond the end of an aligned row is the next
// row's, or nobody's, and meets weights of zero.
#pragma once

// The loaders: pieces of 16 bytes, of rows that are aligned to 16 or not; or whole tiles, by one instruction
// of one thread.
#define CP_ASYNC_ALIGNED 0
#define CP_ASYNC_UNALIGNED 1
#define TMA 2

#include "common/plane.cuh"
#include "common/ptx.cuh"

// The rest of a launch's parameters. The same struct is in src/engine/cuda/launch/parameters.rs.
struct Tiles {
    const u32 *fragments;  // the weights as the tensor cores take them
    i32 planes;
    i32 count;      // tiles of all planes
    i32 row_shift;  // of a separable mask's row pass, or of the first of two masks
    i32 is_ready;   // 1: nothing that this launch reads is written by one that may still be in flight
    i32 row_start;  // what the sums of a row pass begin with
    unsigned row_factor;  // FIRST_DIVIDES: what the sums of the first of two masks are multiplied by
};
static_assert(sizeof(Tiles) == 32);
static_assert(OFFSET(Tiles, fragments) == 0);
static_assert(OFFSET(Tiles, planes) == 8);
static_assert(OFFSET(Tiles, count) == 12);
static_assert(OFFSET(Tiles, row_shift) == 16);
static_assert(OFFSET(Tiles, is_ready) == 20);
static_assert(OFFSET(Tiles, row_start) == 24);
static_assert(OFFSET(Tiles, row_factor) == 28);

constexpr i32 THREADS = 32 * WARPS;
constexpr i32 PIXEL_BYTES = CHANNELS * SAMPLE_BYTES;
constexpr i32 REACH = MASK_W / 2 * PIXEL_BYTES;
// A chunk that every tile has bytes of.
constexpr i32 FIRST_CHUNK = LEFT / 16;

template <bool ALIGNED> constexpr i32 pitch = ALIGNED ? ALIGNED_PITCH : PITCH;

// What is deinterleaved: bytes of a sample, bytes that stay together, and what a row begins with.
constexpr i32 COMPONENTS = DEINTERLEAVE ? CHANNELS : 1;
constexpr i32 DIGITS = DEINTERLEAVE ? SAMPLE_BYTES : 1;
constexpr i32 PARTS = COMPONENTS * DIGITS;
constexpr i32 UNIT = SAMPLE_BYTES / DIGITS;
template <bool ALIGNED> constexpr i32 row_pitch = DEINTERLEAVE ? PART_PITCH : pitch<ALIGNED>;
constexpr i32 FIRST_BYTE = DEINTERLEAVE ? 0 : START;

__device__ __forceinline__ u32 word(const u8 *p)
{
    return *(const u32 *)p;
}

// How many bytes too early a row of the tile begins. Rows that were not loaded, whose values nobody needs,
// hold anything there.
__device__ __forceinline__ i32 misalignment_of(const u8 *row)
{
    return *(const i32 *)(row + PITCH - 4) & 15;
}

// Four words of a tile's row, from byte `at` on: of an aligned row a multiple of 16.
template <bool ALIGNED> __device__ __forceinline__ void read_four_words(u32 (&to)[4], const u8 *row, i32 at)
{
    if constexpr (ALIGNED) {
        const uint4 four = *(const uint4 *)(row + at);
        to[0] = four.x;
        to[1] = four.y;
        to[2] = four.z;
        to[3] = four.w;
    } else {
        at += misalignment_of(row);
        u32 next = word(row + (at & ~3));
#pragma unroll
        for (i32 k = 0; k < 4; ++k) {
            const u32 low = next;
            next = word(row + (at & ~3) + 4 * k + 4);
            to[k] = __funnelshift_r(low, next, 8 * (at & 3));
        }
    }
}

// The words of two stored samples, without unused bits.
template <i32 N> __device__ __forceinline__ void drop_unused_bits(u32 (&words)[N])
{
#if SAMPLE_SHIFT
    constexpr u32 USED = (0xffffu >> SAMPLE_SHIFT) * 0x10001u;
#pragma unroll
    for (i32 k = 0; k < N; ++k) {
        words[k] = words[k] >> SAMPLE_SHIFT & USED;
    }
#endif
}
