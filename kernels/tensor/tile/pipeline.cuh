// The loop over a block's tiles: while one is computed, the next one is in flight.
//
//   load 0 | load 1          | load 2          | ..
//          | halo, work on 0 | halo, work on 1 | ..
#pragma once

#include "tensor/tile/deinterleave.cuh"
#include "tensor/tile/halo.cuh"
#include "tensor/tile/load.cuh"
#include "tensor/tile/operand.cuh"
#include "tensor/tile/scheduler.cuh"

// Calls work(stage, plane, tile, start) for each of the block's tiles; the next one is loaded meanwhile. Sums
// begin with `start`.
template <bool ALIGNED, class Loader, class Work>
__device__ __forceinline__ void for_each_tile(const Planes &planes, const Tiles &tiles, Loader loader,
                                              const Work &work)
{
    extern __shared__ __align__(128) u8 stages[];
    __shared__ volatile i32 biases[4][4];
    if (threadIdx.x < 16) {
        biases[threadIdx.x / 4][threadIdx.x % 4] =
            !WIDE && SAME_BIAS ? (i32)shared_bias(planes.at[threadIdx.x / 4]) : 0;
    }
    loader.begin();
    TileScheduler scheduler;
    scheduler.begin(planes, tiles.planes);
    Tile tile = scheduler.tile();
    loader.prefetch(tile);
    __syncthreads();
    if (!tiles.is_ready) {
        wait_for_earlier_launches();
    }
    loader.load(stages, 0, tile);
    loader.end_of_loads();
    i32 slot = 0, odd = 0;
    bool more = true;
    while (more) {
        const Plane &plane = planes.at[tile.plane];
        scheduler.advance(planes, tiles.planes);
        const Tile next = scheduler.tile();
        more = scheduler.more();
        if (!DEINTERLEAVE && more) {
            loader.load(stages + (slot ^ 1) * STAGE, slot ^ 1, next);
        }
        if (!more) {
            let_next_launch_begin();
        }
        loader.end_of_loads();
        loader.wait(slot, odd);
        u8 *loaded = stages + slot * STAGE;
        if (fill_halo<ALIGNED, Loader::WHOLE>(loaded, plane, tile)) {
            loader.end_of_fill();
            __syncthreads();
        }
        if constexpr (DEINTERLEAVE) {
            deinterleave_tile<ALIGNED>(stages + STAGE, loaded);
            __syncthreads();
            if (more) {
                loader.load(loaded, 0, next);
            }
            loader.end_of_loads();
            loaded = stages + STAGE;
        }
        i32 start[4];
        read_four(start, biases[tile.plane]);
        work(loaded, plane, tile, start);
        // No thread overwrites the tile before all have read it.
        __syncthreads();
        tile = next;
        if (DEINTERLEAVE) {
            odd ^= 1;
        } else {
            odd ^= slot;
            slot ^= 1;
        }
    }
}
