// Fills the halo of a loaded tile that is outside the plane, as the border says.
//
//        above      rows of the border, copied from rows of the tile or of the plane
//      +--------+
// left |  plane | right       columns, pixel by pixel
//      +--------+
//        below
#pragma once

#include "common/border.cuh"
#include "tensor/tile/load.cuh"

// The type by which halo pixels are copied: whole pixels where these are aligned to their size, else samples.
template <i32 BYTES> struct UnitOf {
    typedef Sample Type;
};
template <> struct UnitOf<2> {
    typedef u16 Type;
};
template <> struct UnitOf<4> {
    typedef u32 Type;
};
template <> struct UnitOf<8> {
    typedef unsigned long long Type;
};

// Fills, in the first `rows` rows of a loaded tile, `left` pixels to the left of the plane and `right` to its
// right. Of the outermost ones a part may be needed, if the tile does not begin or end with a whole pixel.
// NEAR: no pixel is further from the plane than its size.
template <bool ALIGNED, bool NEAR>
__device__ __forceinline__ void fill_halo_columns(u8 *stage, const Plane &plane, const Tile &tile, i32 rows,
                                                  i32 left, i32 right)
{
    typedef typename UnitOf<ALIGNED && TILE_W % PIXEL_BYTES == 0 ? PIXEL_BYTES : SAMPLE_BYTES>::Type Unit;
    constexpr i32 UNITS = PIXEL_BYTES / sizeof(Unit), SAMPLES = sizeof(Unit) / SAMPLE_BYTES;
    // Several loads in flight, since pixels that the tile lacks (at the other end of the row) come from
    // global memory.
    constexpr i32 AT_ONCE = !NEAR ? 1 : UNITS == 1 ? 4 : 2;
    constexpr i32 BEGIN = LEFT - REACH, END = LEFT + TILE_W + REACH;
    Unit constant[UNITS] = {};
    if (BORDER_IS_CONSTANT) {
#pragma unroll
        for (i32 c = 0; c < CHANNELS; ++c) {
            constant[c / SAMPLES] |= (Unit)(plane.channel[c].border << SAMPLE_SHIFT)
                                     << 8 * SAMPLE_BYTES * (c % SAMPLES);
        }
    }
    const i32 top = tile.y - MASK_H / 2, origin = tile.x - LEFT;
    const i32 across = left + right, count = across * rows;
    for (i32 k = threadIdx.x; k < count; k += AT_ONCE * THREADS) {
        u8 *to[AT_ONCE] = {};
        i32 place[AT_ONCE] = {};
        Unit values[AT_ONCE][UNITS];
#pragma unroll
        for (i32 i = 0; i < AT_ONCE; ++i) {
            const i32 r = (k + i * THREADS) / across, column = k + i * THREADS - r * across;
            const i32 pixel = column < left ? column - left : plane.width + column - left;
            const i32 x = border_index<NEAR>(pixel, plane.width),
                      y = border_index<NEAR>(top + r, plane.height);
            if (k + i * THREADS >= count || (BORDER_IS_CONSTANT && y < 0)) {
                continue;
            }
            u8 *row = stage + r * pitch<ALIGNED> + misalignment<ALIGNED>(row_start(plane, tile, y));
            const i32 from = x * PIXEL_BYTES - origin;
            place[i] = pixel * PIXEL_BYTES - origin;
            to[i] = row + place[i];
            const bool is_loaded = from >= 0 && from + PIXEL_BYTES <= END;
            const u8 *source = plane.source + (i64)y * plane.source_pitch + x * PIXEL_BYTES;
#pragma unroll
            for (i32 u = 0; u < UNITS; ++u) {
                values[i][u] = BORDER_IS_CONSTANT ? constant[u]
                               : is_loaded        ? ((const Unit *)(row + from))[u]
                                                  : __ldg((const Unit *)source + u);
            }
        }
#pragma unroll
        for (i32 i = 0; i < AT_ONCE; ++i) {
#pragma unroll
            for (i32 u = 0; u < UNITS; ++u) {
                const i32 at = place[i] + u * (i32)sizeof(Unit);
                if (to[i] && (TILE_W % PIXEL_BYTES == 0 || (at >= BEGIN && at < END))) {
                    ((Unit *)to[i])[u] = values[i][u];
                }
            }
        }
    }
}

// Fills the halo columns of narrow masks: one row per thread, with all of an edge's loads in flight. A small
// frame waits for its edge tiles.
template <bool ALIGNED>
__device__ __forceinline__ void fill_narrow_halo_columns(u8 *stage, const Plane &plane, const Tile &tile,
                                                         i32 rows, i32 left, i32 right)
{
    constexpr i32 REACHED = REACH / SAMPLE_BYTES;
    const i32 origin = tile.x - LEFT;
    for (i32 r = threadIdx.x; r < rows; r += THREADS) {
        const i32 y = border_index(tile.y - MASK_H / 2 + r, plane.height);
        if (BORDER_IS_CONSTANT && y < 0) {
            continue;
        }
        u8 *row = stage + r * pitch<ALIGNED> + misalignment<ALIGNED>(row_start(plane, tile, y)) - origin;
#pragma unroll
        for (i32 edge = 0; edge < 2; ++edge) {
            const i32 samples = (edge == 0 ? left : right) * CHANNELS,
                      first = edge == 0 ? -(MASK_W / 2) : plane.width;
            Sample values[REACHED + 1];
#pragma unroll
            for (i32 i = 0; i < REACHED; ++i) {
                if (i < samples) {
                    const i32 c = i % CHANNELS,
                              from = (border_index(first + i / CHANNELS, plane.width) * CHANNELS + c) *
                                     SAMPLE_BYTES;
                    if (BORDER_IS_CONSTANT) {
                        values[i] = (Sample)(plane.channel[c].border << SAMPLE_SHIFT);
                    } else if ((u32)(from - origin) < (u32)(LEFT + TILE_W + REACH)) {
                        values[i] = *(const Sample *)(row + from);
                    } else {
                        values[i] =
                            __ldg((const Sample *)(plane.source + (i64)y * plane.source_pitch + from));
                    }
                }
            }
#pragma unroll
            for (i32 i = 0; i < REACHED; ++i) {
                if (i < samples) {
                    *(Sample *)(row + first * PIXEL_BYTES + i * SAMPLE_BYTES) = values[i];
                }
            }
        }
    }
}

// Fills the part of a loaded tile that is outside the plane. Returns true if it wrote: then call
// __syncthreads() before reading. WHOLE: the tile's rows outside the plane are not loaded yet (TMA). Pixels
// are read from the tile where it has them, which is many times as fast as from global memory.
template <bool ALIGNED, bool WHOLE>
__device__ __forceinline__ bool fill_halo(u8 *stage, const Plane &plane, const Tile &tile)
{
    constexpr i32 ROW = pitch<ALIGNED>;
    const i32 row_bytes = plane.width * PIXEL_BYTES;
    const i32 top = tile.y - MASK_H / 2;
    const i32 rows = min(ROWS, plane.height + MASK_H / 2 - top);
    const i32 end = min(tile.x + TILE_W, row_bytes) + REACH;
    // Pixels beyond the left edge, and beyond the right.
    const i32 left = (max(REACH - tile.x, 0) + PIXEL_BYTES - 1) / PIXEL_BYTES;
    const i32 right = (max(end - row_bytes, 0) + PIXEL_BYTES - 1) / PIXEL_BYTES;
    // Rows above the plane and below it that are filled here.
    const i32 above = BORDER_IS_CONSTANT || WHOLE ? max(-top, 0) : 0,
              below = BORDER_IS_CONSTANT || WHOLE ? max(top + rows - plane.height, 0) : 0;
    if (left + right + above + below == 0) {
        return false;
    }
    const auto row_beyond = [&](i32 i) { return i < above ? i : rows - below + i - above; };
    if (!BORDER_IS_CONSTANT && above + below > 0) {
        // Copies the rows that the border names in chunks, up to the last chunk with bytes of the plane.
        const i32 begin = max(tile.x - LEFT, 0);
        const i32 chunks = (min(tile.x - LEFT + 16 * ALIGNED_CHUNKS, row_bytes) - begin + 15) / 16;
        for (i32 k = threadIdx.x; k < chunks * (above + below); k += THREADS) {
            const i32 i = k / chunks, r = row_beyond(i), at = begin + 16 * (k - i * chunks);
            const i32 y = border_index(top + r, plane.height), in_row = at - (tile.x - LEFT);
            uint4 *to = (uint4 *)(stage + r * ROW + in_row);
            if ((u32)(y - top) < (u32)ROWS) {
                *to = *(const uint4 *)(stage + (y - top) * ROW + in_row);
            } else {
                *to = __ldg((const uint4 *)(plane.source + (i64)y * plane.source_pitch + at));
            }
        }
        // The code below overwrites the end of the last chunk.
        __syncthreads();
    }
    constexpr i32 REACHED = REACH / SAMPLE_BYTES;
    if constexpr (REACHED <= 2 || (REACHED <= 4 && ROWS * REACHED > THREADS)) {
        fill_narrow_halo_columns<ALIGNED>(stage, plane, tile, rows, left, right);
    } else if (BORDER_NEEDS_NO_DIVISION || (plane.width > MASK_W / 2 && plane.height > MASK_H / 2)) {
        fill_halo_columns<ALIGNED, true>(stage, plane, tile, rows, left, right);
    } else {
        fill_halo_columns<ALIGNED, false>(stage, plane, tile, rows, left, right);
    }
    if (BORDER_IS_CONSTANT) {
        const i32 samples = (end - (tile.x - REACH)) / SAMPLE_BYTES;
        const i32 first = (tile.x - REACH) / SAMPLE_BYTES + CHANNELS * MASK_W;
        for (i32 k = threadIdx.x; k < samples * (above + below); k += THREADS) {
            const i32 i = k / samples, sample = k - i * samples;
            const i32 c = (first + sample) % CHANNELS;
            u8 *row = stage + row_beyond(i) * ROW;
            *(Sample *)(row + LEFT - REACH + sample * SAMPLE_BYTES) =
                (Sample)(plane.channel[c].border << SAMPLE_SHIFT);
            if (!ALIGNED && sample == 0) {
                *(i32 *)(row + ROW - 4) = 0;
            }
        }
    }
    return true;
}
