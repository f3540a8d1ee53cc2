// The tile scheduler assigns tiles to blocks: every gridDim.x-th tile to a block. The grid has no more blocks
// than the card holds at a time.
//
//   plane 0   0 1 2 3        of 5 blocks block 1 has tiles 1, 6, ..:
//             4 5 6 7        across first, then down, then plane after plane
//   plane 1   8 9
#pragma once

#include "tensor/tile/geometry.cuh"

// A tile's place: which plane, the byte of its first result in the row, and its first row.
struct Tile {
    i32 plane;
    i32 x;
    i32 y;
};

// A block's tiles: every gridDim.x-th one, across first, then down, then plane after plane.
struct TileScheduler {
    i32 index;   // among the plane's tiles
    i32 plane;
    i32 column;  // in tiles
    i32 row;
    i32 across;  // tiles of the plane beside each other, and all of them
    i32 tiles;
    i32 step_column;  // from one of the block's tiles to its next
    i32 step_row;

    __device__ __forceinline__ void enter(const Planes &planes)
    {
        across = (planes.at[plane].width * PIXEL_BYTES + TILE_W - 1) / TILE_W;
        tiles = across * ((planes.at[plane].height + TILE_H - 1) / TILE_H);
    }

    // Finds the tile with number `index`, counted from the plane that was entered last. Beyond the last tile
    // it stays in the last plane.
    __device__ __forceinline__ void locate(const Planes &planes, i32 count)
    {
        while (index >= tiles && plane + 1 < count) {
            index -= tiles;
            ++plane;
            enter(planes);
        }
        row = index / across;
        column = index - row * across;
        step_row = (i32)gridDim.x / across;
        step_column = (i32)gridDim.x - step_row * across;
    }

    __device__ __forceinline__ void begin(const Planes &planes, i32 count)
    {
        index = blockIdx.x;
        plane = 0;
        enter(planes);
        locate(planes, count);
    }

    __device__ __forceinline__ void advance(const Planes &planes, i32 count)
    {
        index += gridDim.x;
        if (index >= tiles && plane + 1 < count) {
            locate(planes, count);
            return;
        }
        column += step_column;
        row += step_row;
        if (column >= across) {
            column -= across;
            ++row;
        }
    }

    // True as long as there is a tile.
    __device__ __forceinline__ bool more() const
    {
        return index < tiles;
    }

    __device__ __forceinline__ Tile tile() const
    {
        return Tile{plane, column * TILE_W, row * TILE_H};
    }
};
