// How a tile of a plane lies in shared memory: its rows, their halo, and where a lane finds bytes in it.
// docs/gpu-kernels.md has the pictures.
//
//   stage       |<--------------------- PITCH, or ALIGNED_PITCH ---------------------->|
//   row 0       | unused | REACH |  TILE_W bytes of results  | REACH | .. misalignment |
//   row 1       |<---- LEFT ---->|                                                     |
//   ..                                                          ROWS rows: TILE_H + MASK_H - 1
//   stage 1     at STAGE bytes from stage 0: the tile that is loaded meanwhile
//
// Compile-time parameters (given by src/engine/cuda/kernels/tensor/shape.rs), beside those of
// common/plane.cuh:
//   SAMPLE_SHIFT    unused low bits of a stored sample
//   WIDE            1: sums take 64 bits
//   DIVIDES         1: sums, which are below 2^31, are divided by a multiplication; 0: by a shift
//   MASK_W, MASK_H  columns and rows of the mask, or of two fused masks together
//   SAME_BIAS       1: all components of a plane have the same bias
//   BANDS           sums of byte products that make up one sum: sum = (band 0 * 256 + band 1) * 256 + ...
//   TILE_W, TILE_H  bytes across and rows that a block computes at a time
//   ROWS            rows that are loaded of a tile with its halo
//   PITCH           bytes from row to row; CHUNKS: 16-byte chunks that are loaded of a row
//   ALIGNED_PITCH, ALIGNED_CHUNKS  the same in an ALIGNED launch
//   STAGE           bytes from one stage to the next, or to the deinterleaved parts, with room for reads
//                   beyond the last row; a multiple of 128, as TMA needs it
//   LEFT            bytes of a tile's row before its first result
//   WARPS_X, WARPS  warps of a block beside each other, and all of them; BLOCKS: blocks for which a
//                   multiprocessor shall have registers
//   LOADER          how tiles come to shared memory: one of the three below
//   DEINTERLEAVE    1: a tile's pixels are deinterleaved in shared memory before the products, into parts:
//                   the low bytes of a component, its high bytes, and so on; bands are those of bytes,
//                   without gaps
//   PART, PART_PITCH  with DEINTERLEAVE: bytes from one part to the next, and from row to row
//
// A tile's rows are copied in 16-byte chunks, from addresses that are multiples of 16. In an ALIGNED launch
// all rows of the plane begin at such addresses; otherwise a row lies up to 15 bytes further right in its
// stage, and its last word there holds this misalignment. A lane that reads beyond the end of an aligned row
// reads the next row, or unused bytes; their weights are zero.
#pragma once

// The loaders: 16-byte chunks, of rows that are aligned to 16 bytes or not; or whole tiles, by TMA.
#define CP_ASYNC_ALIGNED 0
#define CP_ASYNC_UNALIGNED 1
#define TMA 2

#include "common/plane.cuh"
#include "common/platform/ptx.cuh"

// The rest of a launch's parameters. The same struct is in src/engine/cuda/launch/parameters.rs.
struct Tiles {
    const u32 *fragments;  // the weights as fragments of the lanes
    i32 planes;
    i32 count;      // tiles of all planes
    i32 row_shift;  // of a separable mask's row pass, or of the first of two masks
    i32 is_ready;   // 1: no launch that may still be in flight writes what this one reads
    i32 row_start;  // the start value of a row pass's sums
    unsigned row_factor;  // FIRST_DIVIDES: the multiplier of the first mask's `quotient`
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
// The chunk with a row's first result, which is loaded for every tile. Its thread stores the misalignment.
constexpr i32 FIRST_CHUNK = LEFT / 16;

template <bool ALIGNED> constexpr i32 pitch = ALIGNED ? ALIGNED_PITCH : PITCH;

// Deinterleaving makes a part of each component and each of its DIGITS bytes. Rows of products have values of
// UNIT bytes; their first K-slice begins at FIRST_BYTE.
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

// The misalignment of a row of the tile. Rows that were not loaded hold garbage there; no result needs them.
__device__ __forceinline__ i32 misalignment_of(const u8 *row)
{
    return *(const i32 *)(row + PITCH - 4) & 15;
}

// Reads four words of a tile's row from byte `at` on, in an aligned launch a multiple of 16.
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

// Shifts the unused low bits out of words of two stored samples each.
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
