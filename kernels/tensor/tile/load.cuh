// Loads tiles to shared memory: the part of a tile and its halo that is inside the plane.
//
//   cp.async   each thread copies 16-byte chunks, of rows that are aligned to 16 bytes or not
//   TMA        one thread copies the whole tile
#pragma once

#include "common/border.cuh"
#include "tensor/tile/scheduler.cuh"

// The address of the first byte of a tile's row in memory, which may lie before the plane's row.
__device__ __forceinline__ const u8 *row_start(const Plane &plane, const Tile &tile, i32 y)
{
    return plane.source + (i64)y * plane.source_pitch + (tile.x - LEFT);
}

template <bool ALIGNED> __device__ __forceinline__ i32 misalignment(const u8 *start)
{
    return ALIGNED ? 0 : (i32)((u32)(unsigned long long)start & 15);
}

// Starts to copy the part of a tile and its halo that is inside the plane. Rows outside the plane are copied
// from the rows that the border names.
template <bool ALIGNED>
__device__ __forceinline__ void load_tile(u8 *stage, const Plane &plane, const Tile &tile)
{
    constexpr i32 COUNT = ALIGNED ? ALIGNED_CHUNKS : CHUNKS, AT_ONCE = THREADS / COUNT, ROW = pitch<ALIGNED>;
    static_assert(AT_ONCE > 0, "a row has more chunks than the block has threads");
    const i32 chunk = threadIdx.x % COUNT, first = threadIdx.x / COUNT;
    const i32 left = plane.width * PIXEL_BYTES - (tile.x - LEFT + 16 * chunk);
    // Unaligned rows lie up to 15 bytes further right, so that a chunk beyond the row's end may still hold
    // bytes of the row.
    if ((AT_ONCE * COUNT < THREADS && first >= AT_ONCE) || left <= (ALIGNED ? 0 : -16) ||
        tile.x - LEFT + 16 * chunk <= -16) {
        return;
    }
    const i32 top = tile.y - MASK_H / 2;
    u8 *row = stage + first * ROW;
    const u32 to = shared_address(row) + 16 * chunk;
    auto copy_row = [&](i32 r, const u8 *start) {
        const i32 before = misalignment<ALIGNED>(start);
        const i32 bytes = min(left + before, 16);
        if (ALIGNED || (bytes > 0 && tile.x - LEFT + 16 * chunk - before > -16)) {
            copy(to + r * ROW, start - before + 16 * chunk, bytes);
        }
        if (!ALIGNED && chunk == FIRST_CHUNK) {
            *(i32 *)(row + r * ROW + ROW - 4) = before;
        }
    };
    if (top >= 0 && top + ROWS <= plane.height) {
        const u8 *start = row_start(plane, tile, top + first);
        const i64 step = plane.source_pitch * AT_ONCE;
        const bool whole = ALIGNED && left >= 16;
#pragma unroll
        for (i32 r = 0; r < ROWS; r += AT_ONCE) {
            if (r + AT_ONCE <= ROWS || first + r < ROWS) {
                if (whole) {
                    copy(to + r * ROW, start + 16 * chunk);
                } else {
                    copy_row(r, start);
                }
            }
            start += step;
        }
        return;
    }
    // Rows that no result needs are left out.
    const i32 rows = min(ROWS, plane.height + MASK_H / 2 - top) - first;
    for (i32 r = 0; r < rows; r += AT_ONCE) {
        const i32 y = border_index(top + first + r, plane.height);
        if (!BORDER_IS_CONSTANT || y >= 0) {
            copy_row(r, row_start(plane, tile, y));
        }
    }
}

// Prefetches the part of a tile and its halo that is inside the plane to the level-2 cache. All
// multiprocessors share that cache, so that what the launch before this one still writes becomes current
// there.
__device__ __forceinline__ void prefetch_rows(const Plane &plane, const Tile &tile)
{
    constexpr i32 LINE = 128, COUNT = (16 * ALIGNED_CHUNKS + LINE - 1) / LINE + 1;
    const i32 begin = max(tile.x - LEFT, 0), end = min(tile.x + TILE_W + REACH, plane.width * PIXEL_BYTES);
    for (i32 k = threadIdx.x; k < COUNT * ROWS; k += THREADS) {
        const i32 r = k / COUNT, x = min(begin + (k - r * COUNT) * LINE, end - 1);
        const i32 y = min(max(tile.y - MASK_H / 2 + r, 0), plane.height - 1);
        prefetch(plane.source + (i64)y * plane.source_pitch + x);
    }
}

// The loader by cp.async: all threads copy chunks of a tile.
template <bool ALIGNED> struct CpAsync {
    const Planes &planes;

    // True if a tile is copied as a whole, with zeros in rows outside the plane.
    static constexpr bool WHOLE = false;

    __device__ __forceinline__ void begin()
    {
    }

    __device__ __forceinline__ void prefetch(const Tile &tile)
    {
        prefetch_rows(planes.at[tile.plane], tile);
    }

    __device__ __forceinline__ void load(u8 *stage, i32, const Tile &tile)
    {
        load_tile<ALIGNED>(stage, planes.at[tile.plane], tile);
    }

    __device__ __forceinline__ void end_of_loads()
    {
        end_of_copies();
    }

    // Waits for all loads but those that the last `end_of_loads` ended.
    __device__ __forceinline__ void wait(i32, i32)
    {
        wait_for_copies();
        __syncthreads();
    }

    __device__ __forceinline__ void end_of_fill()
    {
    }
};

#if LOADER == TMA
// The planes' tensor maps. The same struct is in src/engine/cuda/launch/parameters.rs.
struct TensorMaps {
    TensorMap at[4];
};
static_assert(sizeof(TensorMaps) == 512);
static_assert(OFFSET(TensorMaps, at) == 0);

// The loader by TMA: one thread copies whole tiles.
struct Tma {
    const TensorMaps &maps;
    Arrivals (&arrivals)[2];

    static constexpr bool WHOLE = true;

    __device__ __forceinline__ void begin()
    {
        if (threadIdx.x == 0) {
            begin_arrivals(arrivals[0]);
            begin_arrivals(arrivals[1]);
        }
    }

    __device__ __forceinline__ void prefetch(const Tile &tile)
    {
        if (threadIdx.x == 0) {
            prefetch_tile(maps.at[tile.plane], (tile.x - LEFT) / 8, tile.y - MASK_H / 2);
        }
    }

    __device__ __forceinline__ void load(u8 *stage, i32 slot, const Tile &tile)
    {
        if (threadIdx.x == 0) {
            expect_bytes(arrivals[slot], ALIGNED_PITCH * ROWS);
            // The division is exact for negative numbers, too: all terms are multiples of 8.
            copy_tile(shared_address(stage), maps.at[tile.plane], (tile.x - LEFT) / 8, tile.y - MASK_H / 2,
                      arrivals[slot]);
        }
    }

    __device__ __forceinline__ void end_of_loads()
    {
    }

    __device__ __forceinline__ void wait(i32 slot, i32 odd)
    {
        wait_for_bytes(arrivals[slot], odd);
    }

    __device__ __forceinline__ void end_of_fill()
    {
        end_of_writes();
    }
};
#endif
