// Two masks one after the other on tensor cores, in one launch: the picture between them stays in shared
// memory.
//
// A block convolves a tile and its halo with the first mask into a second area of shared memory, the middle,
// and the middle with the next mask. docs/gpu-kernels.md has the picture. For planes of one component of a
// byte. Parameters beside those of tensor/tile/geometry.cuh, of which MASK_W and MASK_H are those of both
// masks together, as is a tile's halo:
//   PAIRS, BANDS    pairs of rows under a K-slice's results, and bands, of the first mask; NEXT_PAIRS,
//                   NEXT_BANDS: of the next
//   NEXT_W, NEXT_H  columns and rows of the next mask
//   FIRST_DIVIDES   as DIVIDES, for the first mask; DIVIDES is the next mask's
//   START           the byte of a tile's row at which the first mask's first K-slice begins
//   STEPS           K-slices below each other that a warp works on with the first mask
//   MIDDLE_PITCH    bytes from row to row of the middle; MIDDLE_LEFT: bytes of such a row before a tile's
//                   first result
#include "common/border.cuh"
#include "tensor/epilogue.cuh"
#include "tensor/small_mask.cuh"
#include "tensor/tile/pipeline.cuh"

typedef SharedBands<PAIRS, BANDS> First;
typedef SharedBands<NEXT_PAIRS, NEXT_BANDS> Next;

constexpr i32 NEXT_REACH = NEXT_W / 2;
// Rows of the middle.
constexpr i32 MIDDLE_ROWS = TILE_H + NEXT_H - 1;
// Bytes before a result at which its K-slice begins in the middle.
constexpr i32 NEXT_START = 4;

static_assert(SAMPLE_BYTES == 1 && CHANNELS == 1 && !WIDE && SAME_BIAS && !DEINTERLEAVE,
              "planes of one component of a byte");
static_assert(WARPS == WARPS_X && TILE_H % 2 == 0 && 2 * STEPS == MIDDLE_ROWS, "each warp works on all rows");
static_assert(NEXT_REACH <= NEXT_START && NEXT_START <= MIDDLE_LEFT &&
                  MIDDLE_LEFT + TILE_W + NEXT_REACH <= 128 * WARPS,
              "the middle has what K-slices cover");
// A warp writes words of two rows at once, which must lie in different banks.
static_assert(MIDDLE_PITCH % 16 == 8 && MIDDLE_PITCH >= 128 * WARPS, "lanes write to different banks");

// Divides a sum of the first mask. It is clamped to the range of samples when it is packed.
__device__ __forceinline__ i32 first_levels(const Tiles &tiles, i32 sum)
{
    if constexpr (FIRST_DIVIDES) {
        return quotient(sum < 0 ? 0 : sum, tiles.row_factor, tiles.row_shift);
    }
    return sum >> tiles.row_shift;
}

// Fills the middle outside the plane by the border: the first mask's results there are not what the next mask
// has to read. Returns true if it wrote: then call __syncthreads() before reading.
__device__ __forceinline__ bool fill_middle(u8 *middle, const Plane &plane, const Tile &tile)
{
    if (BORDER_IS_PERIODIC) {
        // Filtering commutes with a periodic border, so the first mask's results are right already.
        return false;
    }
    const i32 top = tile.y - NEXT_H / 2;
    const i32 rows = min(MIDDLE_ROWS, plane.height + NEXT_H / 2 - top);
    const i32 end = min(tile.x + TILE_W, plane.width) + NEXT_REACH;
    // Columns and rows beyond either edge.
    const i32 left = max(NEXT_REACH - tile.x, 0), right = max(end - plane.width, 0);
    const i32 above = max(-top, 0), below = max(top + rows - plane.height, 0);
    if (left + right + above + below == 0) {
        return false;
    }
    auto at = [&](i32 x, i32 y) -> u8 & {
        return middle[(y - top) * MIDDLE_PITCH + MIDDLE_LEFT + x - tile.x];
    };
    // All reads are inside the plane and all writes outside, so that no thread reads what another one writes.
    auto set = [&](i32 x, i32 y, i32 from_x, i32 from_y) {
        at(x, y) = BORDER_IS_CONSTANT ? (u8)plane.channel[0].border : at(from_x, from_y);
    };
    for (i32 k = threadIdx.x; k < (left + right) * rows; k += THREADS) {
        const i32 r = k / (left + right), column = k - r * (left + right);
        const i32 x = column < left ? column - left : plane.width + column - left, y = top + r;
        set(x, y, border_index(x, plane.width), border_index(y, plane.height));
    }
    const i32 begin = max(tile.x - NEXT_REACH, 0), last = min(end, plane.width);
    for (i32 r = 0; r < above + below; ++r) {
        const i32 y = r < above ? r - above : plane.height + r - above,
                  from_y = border_index(y, plane.height);
        for (i32 x = begin + threadIdx.x; x < last; x += THREADS) {
            set(x, y, x, from_y);
        }
    }
    return true;
}

template <bool ALIGNED, class Loader>
__device__ __forceinline__ void convolve(const Planes &planes, const Tiles &tiles, const Loader &loader)
{
    extern __shared__ __align__(128) u8 stages[];
    __shared__ volatile i32 next_biases[4][4];
    if (threadIdx.x < 16) {
        next_biases[threadIdx.x / 4][threadIdx.x % 4] = (i32)planes.at[threadIdx.x / 4].channel[0].high;
    }
    First first;
    first.read(tiles.fragments);
    Next next;
    next.read(tiles.fragments + sizeof(First) / 4 * 32);
    u8 *middle = stages + 2 * STAGE;
    const auto work = [&](const u8 *stage, const Plane &plane, const Tile &tile, const i32(&start)[4]) {
        const i32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
        const i32 across = (warp * 8 + g) * 16;
        u8 *to = middle + t / 2 * MIDDLE_PITCH + across + 4 * (t & 1);
        convolve_shared<ALIGNED, true, pitch<ALIGNED>, STEPS>(
            stage, START + across + 4 * t, start, first,
            [&](const i32(&bands)[BANDS], i32) { return first_levels(tiles, joined<i32>(bands)); },
            [&](i32 s, const i32(&values)[8]) {
                u32 half[2];
                pack(half, values);
                u32 *row = (u32 *)(to + 2 * s * MIDDLE_PITCH);
                row[0] = half[0];
                row[2] = half[1];
            });
        __syncthreads();
        if (fill_middle(middle, plane, tile)) {
            __syncthreads();
        }
        i32 next_start[4];
        read_four(next_start, next_biases[tile.plane]);
        const Run run{t & 1 ? lane - 1 : lane - 3, g == 0 && !(t & 1), g == 7 && (t & 1)};
        // The block's last results of a row lack a part of the middle; the next tile computes them.
        Output<ALIGNED, 2> output(plane, run, tile.x + across + 8 * (t & 1), tile.y + t / 2, tile.x + TILE_W);
        convolve_shared<true, true, MIDDLE_PITCH, TILE_H / 2>(
            middle, MIDDLE_LEFT - NEXT_START + across + 4 * t, next_start, next,
            [&](const i32(&bands)[NEXT_BANDS], i32) { return requantize(planes, joined<i32>(bands)); },
            [&](i32, const i32(&values)[8]) {
                u32 half[2], words[2];
                pack(half, values);
                exchange_halves(words, half);
                output.store(words, 2);
            });
    };
    for_each_tile<ALIGNED>(planes, tiles, loader, work);
}

#include "tensor/entries.cuh"
