// What the tensor-core kernels share: tiles in shared memory, byte products, the store. docs/gpu-kernels.md has the pictures.
//
// Compile-time parameters (given by src/engine/cuda/kernels/tensor/shape.rs), beside those of common/plane.cuh:
//   SAMPLE_SHIFT    unused low bits of a stored sample
//   WIDE            1: sums take 64 bits
//   MASK_W, MASK_H  columns and rows of the mask, or of what two masks reach together
//   SAME_BIAS       1: all components of a plane add the same bias
//   BANDS           sums of byte products that make up one sum: sum = (band 0 * 256 + band 1) * 256 + ...
//   TILE_W, TILE_H  bytes across and rows that a block computes at a time
//   ROWS            rows that are loaded of a tile with its halo
//   PITCH           bytes from row to row; CHUNKS: 16-byte pieces that are loaded of a row
//   ALIGNED_PITCH, ALIGNED_CHUNKS  the same in an ALIGNED launch
//   STAGE           bytes from one tile to where another, or its components, may begin, with room for what is read beyond the last row; a multiple of 128,
//                   as tiles that are copied by one instruction need it
//   LEFT            bytes of a tile's row before its first result
//   WARPS_X, WARPS  warps of a block beside each other, and all of them; BLOCKS: blocks on a multiprocessor to aim at
//   LOADER          how tiles come to shared memory: 0 and 1 in pieces, of rows that are aligned or not, 2 as a whole, by one instruction
//   ALPHA, NORMALISE, FILTER_ALPHA  as in common/premultiply.cuh
//   APART           1: a tile's pixels are taken apart in shared memory before they are multiplied, to the low bytes of each component, and the high ones
//                   after them; so bands have no gaps, and are those of bytes
//   PART, PART_PITCH  then, bytes from one part's rows to the next one's, and from row to row
//   BY_FOURS        1: what weighs a tile by alpha leaves of each four pixels, which begin at multiples of 16 bytes of the tile's row, four bytes of each
//                   component in their place
//
// A tile's rows begin at a multiple of 16 bytes of memory, so that they can be copied in pieces of 16. In an ALIGNED launch all rows begin
// at such a multiple themselves; otherwise the last word of a tile's row says how many bytes too early the row begins. What a lane reads beyond the
// end of an aligned row is the next row's, or nobody's, and meets weights of zero.
#pragma once

#include "common/interleave.cuh"
#include "common/ptx.cuh"
#include "common/plane.cuh"
#include "common/premultiply.cuh"

// The rest of a launch's parameters. The same struct is in src/engine/cuda/launch/parameters.rs.
struct Tiles {
    const u32 *fragments;  // the weights as the tensor cores take them
    i32 planes;
    i32 count;      // tiles of all planes
    i32 row_shift;  // of a separable mask's row pass, or of the first of two masks
    i32 is_ready;   // 1: nothing that this launch reads is written by one that may still be under way
};

constexpr i32 THREADS = 32 * WARPS;
constexpr i32 PIXEL_BYTES = CHANNELS * SAMPLE_BYTES;
constexpr i32 REACH = MASK_W / 2 * PIXEL_BYTES;
// A chunk that every tile has bytes of.
constexpr i32 FIRST_CHUNK = LEFT / 16;

template <bool ALIGNED> constexpr i32 pitch = ALIGNED ? ALIGNED_PITCH : PITCH;

// One of two numbers of four parts; which of them is known to the compiler.
__device__ __forceinline__ const i32 (&either(bool first, const i32 (&a)[4], const i32 (&b)[4]))[4]
{
    return first ? a : b;
}

// A tile's place: which plane, the byte of its first result in the row, and its first row.
struct Tile {
    i32 plane;
    i32 x;
    i32 y;
};

// The tiles that are a block's, every gridDim.x-th one, across first, then down, then plane after plane.
struct Walk {
    i32 index;   // among the plane's tiles
    i32 plane;
    i32 column;  // in tiles
    i32 row;
    i32 across;  // tiles of the plane beside each other, and all of them
    i32 tiles;
    i32 step_column;  // from one of the block's tiles to its next one
    i32 step_row;

    __device__ __forceinline__ void enter(const Planes &planes)
    {
        across = (planes.at[plane].width * PIXEL_BYTES + TILE_W - 1) / TILE_W;
        tiles = across * ((planes.at[plane].height + TILE_H - 1) / TILE_H);
    }

    // Finds the tile with number `index`, counted from the plane that was entered last. Beyond the last tile it stays in the last plane.
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

// Where the tile's row begins in memory, which may be before the plane's row.
__device__ __forceinline__ const u8 *row_start(const Plane &plane, const Tile &tile, i32 y)
{
    return plane.source + (i64)y * plane.source_pitch + (tile.x - LEFT);
}

template <bool ALIGNED> __device__ __forceinline__ i32 early(const u8 *start)
{
    return ALIGNED ? 0 : (i32)((u32)(unsigned long long)start & 15);
}

// Begins to copy what a tile and its halo have in common with the plane. Rows beyond the edges are the rows that the border says.
template <bool ALIGNED> __device__ __forceinline__ void load_tile(u8 *stage, const Plane &plane, const Tile &tile)
{
    constexpr i32 COUNT = ALIGNED ? ALIGNED_CHUNKS : CHUNKS, AT_ONCE = THREADS / COUNT, ROW = pitch<ALIGNED>;
    static_assert(AT_ONCE > 0, "a row has more chunks than the block has threads");
    const i32 chunk = threadIdx.x % COUNT, first = threadIdx.x / COUNT;
    const i32 left = plane.width * PIXEL_BYTES - (tile.x - LEFT + 16 * chunk);
    // Rows may begin up to 15 bytes before the tile does, so that a chunk beyond it may yet have bytes of the row.
    if ((AT_ONCE * COUNT < THREADS && first >= AT_ONCE) || left <= (ALIGNED ? 0 : -16) || tile.x - LEFT + 16 * chunk <= -16) {
        return;
    }
    const i32 top = tile.y - MASK_H / 2;
    u8 *row = stage + first * ROW;
    const u32 to = shared_address(row) + 16 * chunk;
    auto copy_row = [&](i32 r, const u8 *start) {
        const i32 before = early<ALIGNED>(start);
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
        if (BORDER != 1 || y >= 0) {
            copy_row(r, row_start(plane, tile, y));
        }
    }
}

// Brings what a tile and its halo have in common with the plane to the level-2 cache, where it stays if the launch before this one still writes it.
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

// What pixels beyond the edges are copied by: whole ones where those lie at multiples of their size, or samples.
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

// Fills, in the first rows of a loaded tile, the pixels `left` of the plane and `right` of it. If a tile does not begin or end with a pixel, the outermost
// ones may be needed in part. NEAR: none is more than the plane's size away from it.
template <bool ALIGNED, bool NEAR>
__device__ __forceinline__ void fill_columns(u8 *stage, const Plane &plane, const Tile &tile, i32 rows, i32 left, i32 right)
{
    typedef typename UnitOf<ALIGNED && TILE_W % PIXEL_BYTES == 0 ? PIXEL_BYTES : SAMPLE_BYTES>::Type Unit;
    constexpr i32 UNITS = PIXEL_BYTES / sizeof(Unit), SAMPLES = sizeof(Unit) / SAMPLE_BYTES;
    // Several pixels on their way at a time, since at the other end of the row they come from the card's memory. Replicated ones do not, and kernels that weigh
    // by alpha were seen to get a tenth slower.
    constexpr i32 AT_ONCE = !NEAR || (WEIGHED && BORDER == 0) ? 1 : UNITS == 1 ? 4 : 2;
    constexpr i32 BEGIN = LEFT - REACH, END = LEFT + TILE_W + REACH;
    Unit constant[UNITS] = {};
    if (BORDER == 1) {
#pragma unroll
        for (i32 c = 0; c < CHANNELS; ++c) {
            constant[c / SAMPLES] |= (Unit)(plane.channel[c].border << SAMPLE_SHIFT) << 8 * SAMPLE_BYTES * (c % SAMPLES);
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
            const i32 x = border_index<NEAR>(pixel, plane.width), y = border_index<NEAR>(top + r, plane.height);
            if (k + i * THREADS >= count || (BORDER == 1 && y < 0)) {
                continue;
            }
            u8 *row = stage + r * pitch<ALIGNED> + early<ALIGNED>(row_start(plane, tile, y));
            const i32 from = x * PIXEL_BYTES - origin;
            place[i] = pixel * PIXEL_BYTES - origin;
            to[i] = row + place[i];
            const bool is_loaded = from >= 0 && from + PIXEL_BYTES <= END;
            const u8 *source = plane.source + (i64)y * plane.source_pitch + x * PIXEL_BYTES;
#pragma unroll
            for (i32 u = 0; u < UNITS; ++u) {
                values[i][u] = BORDER == 1 ? constant[u] : is_loaded ? ((const Unit *)(row + from))[u] : __ldg((const Unit *)source + u);
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

// The same a row a thread, and all of its samples at once: in a small frame the tiles at its edges are what all wait for.
template <bool ALIGNED>
__device__ __forceinline__ void fill_few_columns(u8 *stage, const Plane &plane, const Tile &tile, i32 rows, i32 left, i32 right)
{
    constexpr i32 REACHED = REACH / SAMPLE_BYTES;
    const i32 origin = tile.x - LEFT;
    for (i32 r = threadIdx.x; r < rows; r += THREADS) {
        const i32 y = border_index(tile.y - MASK_H / 2 + r, plane.height);
        if (BORDER == 1 && y < 0) {
            continue;
        }
        u8 *row = stage + r * pitch<ALIGNED> + early<ALIGNED>(row_start(plane, tile, y)) - origin;
#pragma unroll
        for (i32 edge = 0; edge < 2; ++edge) {
            const i32 samples = (edge == 0 ? left : right) * CHANNELS, first = edge == 0 ? -(MASK_W / 2) : plane.width;
            Sample values[REACHED + 1];
#pragma unroll
            for (i32 i = 0; i < REACHED; ++i) {
                if (i < samples) {
                    const i32 c = i % CHANNELS, from = (border_index(first + i / CHANNELS, plane.width) * CHANNELS + c) * SAMPLE_BYTES;
                    if (BORDER == 1) {
                        values[i] = (Sample)(plane.channel[c].border << SAMPLE_SHIFT);
                    } else if ((u32)(from - origin) < (u32)(LEFT + TILE_W + REACH)) {
                        values[i] = *(const Sample *)(row + from);
                    } else {
                        values[i] = __ldg((const Sample *)(plane.source + (i64)y * plane.source_pitch + from));
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

// Fills what of a loaded tile lies beyond the plane's edges. True if there was something; then all threads must meet before they read. Tiles that were
// copied by one instruction have nothing in rows beyond the edges yet. Pixels are taken out of the tile where it has them, which is many times as fast as
// out of the card's memory.
template <bool ALIGNED, bool WHOLE> __device__ __forceinline__ bool fill_beyond(u8 *stage, const Plane &plane, const Tile &tile)
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
    const i32 above = BORDER == 1 || WHOLE ? max(-top, 0) : 0, below = BORDER == 1 || WHOLE ? max(top + rows - plane.height, 0) : 0;
    if (left + right + above + below == 0) {
        return false;
    }
    const auto row_beyond = [&](i32 i) { return i < above ? i : rows - below + i - above; };
    if (BORDER != 1 && above + below > 0) {
        // Chunks of the rows that the border says, up to the end of the last one that has bytes of the plane.
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
        // What follows writes over the end of the last chunk.
        __syncthreads();
    }
    constexpr i32 REACHED = REACH / SAMPLE_BYTES;
    // A row of four samples takes registers that what weighs by alpha has not.
    if constexpr (REACHED <= 2 || (REACHED <= 4 && ROWS * REACHED > THREADS && !WEIGHED)) {
        fill_few_columns<ALIGNED>(stage, plane, tile, rows, left, right);
    } else if (BORDER <= 1 || (plane.width > MASK_W / 2 && plane.height > MASK_H / 2)) {
        fill_columns<ALIGNED, true>(stage, plane, tile, rows, left, right);
    } else {
        fill_columns<ALIGNED, false>(stage, plane, tile, rows, left, right);
    }
    if (BORDER == 1) {
        const i32 samples = (end - (tile.x - REACH)) / SAMPLE_BYTES;
        const i32 first = (tile.x - REACH) / SAMPLE_BYTES + CHANNELS * MASK_W;
        for (i32 k = threadIdx.x; k < samples * (above + below); k += THREADS) {
            const i32 i = k / samples, sample = k - i * samples;
            const i32 c = (first + sample) % CHANNELS;
            u8 *row = stage + row_beyond(i) * ROW;
            *(Sample *)(row + LEFT - REACH + sample * SAMPLE_BYTES) = (Sample)(plane.channel[c].border << SAMPLE_SHIFT);
            if (!ALIGNED && sample == 0) {
                *(i32 *)(row + ROW - 4) = 0;
            }
        }
    }
    return true;
}

// The bias that all components of the plane share.
__device__ __forceinline__ i64 shared_bias(const Plane &plane)
{
    constexpr i32 FIRST = CONVOLVED & 1 ? 0 : CONVOLVED & 2 ? 1 : CONVOLVED & 4 ? 2 : 3;
    return plane.channel[FIRST].low;
}

// Four times the same number, read from memory because the compiler would make equal registers anew for each use.
__device__ __forceinline__ void read_four(i32 (&to)[4], const volatile i32 (&from)[4])
{
#pragma unroll
    for (i32 k = 0; k < 4; ++k) {
        to[k] = from[k];
    }
}

__device__ __forceinline__ u32 word(const u8 *p)
{
    return *(const u32 *)p;
}

// How many bytes too early a row of the tile begins. Rows that were not loaded, whose values nobody needs, hold anything there.
__device__ __forceinline__ i32 early_by(const u8 *row)
{
    return *(const i32 *)(row + PITCH - 4) & 15;
}

// What is taken apart, of it bytes of a sample, bytes of one that stay together, and what a row begins with.
constexpr i32 COMPONENTS = APART ? CHANNELS : 1;
constexpr i32 DIGITS = APART ? SAMPLE_BYTES : 1;
constexpr i32 PARTS = COMPONENTS * DIGITS;
constexpr i32 UNIT = SAMPLE_BYTES / DIGITS;
template <bool ALIGNED> constexpr i32 row_pitch = APART ? PART_PITCH : pitch<ALIGNED>;
constexpr i32 FIRST_BYTE = APART ? 0 : START;

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
        at += early_by(row);
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

// Brings the parts of a loaded tile's pixels to rows of their own, from the byte on that the first window needs.
template <bool ALIGNED> __device__ __forceinline__ void take_apart(u8 *parts, const u8 *stage)
{
    constexpr i32 WORDS = PART_PITCH / 4, COUNT = CHANNELS * DIGITS;
    for (i32 k = threadIdx.x; k < ROWS * WORDS; k += THREADS) {
        const i32 r = k / WORDS, at = k - r * WORDS;
        const u8 *row = stage + r * pitch<ALIGNED>;
        const i32 offset = START + 4 * COUNT * at + (ALIGNED ? 0 : early_by(row));
        u32 pixels[COUNT], separated[COUNT];
        if constexpr (ALIGNED && COUNT == 4 && START % 16 == 0) {
            read_four_words<ALIGNED>(pixels, row, offset);
        } else if constexpr (ALIGNED && COUNT % 2 == 0 && START % 8 == 0) {
#pragma unroll
            for (i32 p = 0; p < COUNT; p += 2) {
                const uint2 two = *(const uint2 *)(row + offset + 4 * p);
                pixels[p] = two.x;
                pixels[p + 1] = two.y;
            }
        } else {
            const i32 remainder = ALIGNED ? START % 4 : offset & 3;
            const u8 *first = row + offset - remainder;
#pragma unroll
            for (i32 p = 0; p < COUNT; ++p) {
                pixels[p] = word(first + 4 * p);
                if (!ALIGNED || START % 4 != 0) {
                    pixels[p] = __funnelshift_r(pixels[p], word(first + 4 * p + 4), 8 * remainder);
                }
            }
        }
        if constexpr (WEIGHED) {
            separate_weighted(separated, pixels);
        } else {
            if constexpr (DIGITS == 2) {
                drop_unused_bits(pixels);
            }
            separate(separated, pixels);
        }
#pragma unroll
        for (i32 p = 0; p < COUNT; ++p) {
            const i32 c = p / DIGITS;
            if (is_convolved(c) || c == ALPHA) {
                *(u32 *)(parts + p * PART + r * PART_PITCH + 4 * at) = separated[p];
            }
        }
    }
}

// Four pixels with their colours weighed, as pixels or as four bytes of each component.
__device__ __forceinline__ void weigh_four(u32 (&weighed)[4], const u32 (&pixels)[4])
{
    if constexpr (BY_FOURS) {
        separate_weighted(weighed, pixels);
    } else {
#pragma unroll
        for (i32 k = 0; k < 4; ++k) {
            weighed[k] = weighted(pixels[k]);
        }
    }
}

// Weighs the colours of a loaded tile by their alpha, where they are.
template <bool ALIGNED> __device__ __forceinline__ void weigh(u8 *stage)
{
    constexpr i32 FIRST = (LEFT - REACH) / 16, COUNT = ALIGNED_CHUNKS - FIRST;
    for (i32 k = threadIdx.x; k < ROWS * COUNT; k += THREADS) {
        const i32 r = k / COUNT;
        u8 *row = stage + r * pitch<ALIGNED>;
        u8 *p = row + 16 * (FIRST + k - r * COUNT) + (ALIGNED ? 0 : early_by(row));
        u32 pixels[4], weighed[4];
        if constexpr (ALIGNED) {
            read_four_words<ALIGNED>(pixels, p, 0);
            weigh_four(weighed, pixels);
            *(uint4 *)p = make_uint4(weighed[0], weighed[1], weighed[2], weighed[3]);
        } else {
            // Byte by byte, since others write the rest of the words.
#pragma unroll
            for (i32 i = 0; i < 4; ++i) {
                pixels[i] = p[4 * i] | p[4 * i + 1] << 8 | p[4 * i + 2] << 16 | (u32)p[4 * i + 3] << 24;
            }
            weigh_four(weighed, pixels);
#pragma unroll
            for (i32 i = 0; i < 16; ++i) {
                p[i] = (u8)(weighed[i / 4] >> 8 * (i % 4));
            }
        }
    }
}

// Alpha before the step of N pixels beside each other: words that hold it, and which of their bytes it is.
template <i32 N> struct Alphas {
    static constexpr bool BESIDE = APART || BY_FOURS;  // four pixels' in a word
    u32 words[BESIDE ? (N + 3) / 4 : N];

    __device__ __forceinline__ u32 word(i32 k) const { return words[BESIDE ? k / 4 : k]; }
    static constexpr __device__ i32 byte(i32 k) { return BESIDE ? k % 4 : ALPHA_BYTE; }
};

// Those of the pixels from byte `x` of a tile's row `y` on: out of the tile, whose colours are weighed, or out of its components.
template <bool ALIGNED, i32 N> __device__ __forceinline__ void read_alphas(Alphas<N> &alphas, const u8 *stage, i32 x, i32 y)
{
    const u8 *p = stage + (y + MASK_H / 2) * row_pitch<ALIGNED>;
    if constexpr (APART) {
        constexpr i32 FIRST = (LEFT - START) / CHANNELS, REMAINDER = FIRST % 4;
        p += ALPHA_BYTE * PART + FIRST - REMAINDER + x / CHANNELS;
#pragma unroll
        for (i32 k = 0; k < N / 4; ++k) {
            alphas.words[k] = word(p + 4 * k);
            if (REMAINDER != 0) {
                alphas.words[k] = __funnelshift_r(alphas.words[k], word(p + 4 * k + 4), 8 * REMAINDER);
            }
        }
    } else if constexpr (BY_FOURS) {
        static_assert(N == 4 || !BY_FOURS, "a lane has four pixels");
        u32 parts[4];
        read_four_words<ALIGNED>(parts, p, LEFT + x);
        alphas.words[0] = parts[ALPHA_BYTE];
    } else if constexpr (ALIGNED) {
#pragma unroll
        for (i32 k = 0; k < N; ++k) {
            alphas.words[k] = word(p + LEFT + x + 4 * k);
        }
    } else {
        p += early_by(p) + LEFT + x + ALPHA_BYTE;
#pragma unroll
        for (i32 k = 0; k < N; ++k) {
            alphas.words[k] = (u32)p[4 * k] << 8 * ALPHA_BYTE;
        }
    }
}

// Tiles on their way to shared memory, each piece of 16 bytes by the thread that asks for it.
template <bool ALIGNED> struct PieceByPiece {
    const Planes &planes;

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

    // Waits for the tile before the one that was asked for last.
    __device__ __forceinline__ void wait(i32, i32)
    {
        wait_for_copies();
        __syncthreads();
    }

    __device__ __forceinline__ void end_of_fill()
    {
    }
};

#if LOADER == 2
// The planes' rows as the instruction takes them. The same struct is in src/engine/cuda/launch/parameters.rs.
struct TileMaps {
    TileMap at[4];
};

// Tiles on their way to shared memory, each as a whole.
struct Whole {
    const TileMaps &maps;
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
            // Negative numbers stay whole ones: all terms are multiples of 8.
            copy_tile(shared_address(stage), maps.at[tile.plane], (tile.x - LEFT) / 8, tile.y - MASK_H / 2, arrivals[slot]);
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

// Calls work(stage, plane, tile, start) for every tile that is this block's, each loaded while the one before it is worked on. Sums begin
// with `start`.
template <bool ALIGNED, class Loader, class Work>
__device__ __forceinline__ void for_each_tile(const Planes &planes, const Tiles &tiles, Loader loader, const Work &work)
{
    extern __shared__ __align__(128) u8 stages[];
    __shared__ volatile i32 biases[4][4];
    if (threadIdx.x < 16) {
        biases[threadIdx.x / 4][threadIdx.x % 4] = !WIDE && SAME_BIAS ? (i32)shared_bias(planes.at[threadIdx.x / 4]) : 0;
    }
    loader.begin();
    Walk walk;
    walk.begin(planes, tiles.planes);
    Tile tile = walk.tile();
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
        walk.advance(planes, tiles.planes);
        const Tile next = walk.tile();
        more = walk.more();
        if (!APART && more) {
            loader.load(stages + (slot ^ 1) * STAGE, slot ^ 1, next);
        }
        if (!more) {
            let_next_launch_begin();
        }
        loader.end_of_loads();
        loader.wait(slot, odd);
        u8 *loaded = stages + slot * STAGE;
        if (fill_beyond<ALIGNED, Loader::WHOLE>(loaded, plane, tile)) {
            loader.end_of_fill();
            __syncthreads();
        }
        if constexpr (WEIGHED && !APART) {
            weigh<ALIGNED>(loaded);
            loader.end_of_fill();
            __syncthreads();
        }
        if constexpr (APART) {
            take_apart<ALIGNED>(stages + STAGE, loaded);
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
        // Nobody overwrites the tile before all have read it.
        __syncthreads();
        tile = next;
        if (APART) {
            odd ^= 1;
        } else {
            odd ^= slot;
            slot ^= 1;
        }
    }
}

// N words `GAP` bytes apart, the first of them `offset` bytes into the tile's row. `REMAINDER` is the offset modulo 4 where that is
// known, in an aligned launch.
template <bool ALIGNED, i32 N, i32 GAP, i32 REMAINDER>
__device__ __forceinline__ void read_words(u32 (&out)[N], const u8 *row, i32 offset)
{
    static_assert(GAP % 2 == 0, "words begin at a multiple of two bytes from one another");
    constexpr bool SHARED = (N - 1) * GAP + 4 <= 8 + 4 * N;  // words overlap or touch, so that neighbours share what is read
    if constexpr (SHARED) {
        // Bytes from the first word's begin to the last one's end.
        constexpr i32 SPAN = (N - 1) * GAP + 4;
        if constexpr (ALIGNED) {
            constexpr i32 READ = (SPAN + REMAINDER + 3) / 4;
            u32 w[READ];
#pragma unroll
            for (i32 k = 0; k < READ; ++k) {
                w[k] = word(row + offset - REMAINDER + 4 * k);
            }
#pragma unroll
            for (i32 k = 0; k < N; ++k) {
                const i32 at = REMAINDER + GAP * k;
                out[k] = at % 4 == 0 ? w[at / 4] : __funnelshift_r(w[at / 4], w[at / 4 + (at % 4 != 0)], 8 * (at % 4));
            }
        } else {
            constexpr i32 WORDS = (SPAN + 3) / 4;
            offset += early_by(row);
            const u8 *p = row + (offset & ~3);
            const i32 shift = 8 * (offset & 3);
            u32 w[WORDS + 1];
#pragma unroll
            for (i32 k = 0; k <= WORDS; ++k) {
                w[k] = word(p + 4 * k);
            }
#pragma unroll
            for (i32 k = 0; k < WORDS; ++k) {
                w[k] = __funnelshift_r(w[k], w[k + 1], shift);
            }
#pragma unroll
            for (i32 k = 0; k < N; ++k) {
                const i32 at = GAP * k;
                out[k] = at % 4 == 0 ? w[at / 4] : __funnelshift_r(w[at / 4], w[at / 4 + 1], 16);
            }
        }
    } else {
        i32 shift = 8 * REMAINDER;
        const u8 *p = row + offset - REMAINDER;
        if (!ALIGNED) {
            offset += early_by(row);
            p = row + (offset & ~3);
            shift = 8 * (offset & 3);
        }
#pragma unroll
        for (i32 k = 0; k < N; ++k) {
            out[k] = word(p + GAP * k);
            if (!ALIGNED || REMAINDER != 0) {
                out[k] = __funnelshift_r(out[k], word(p + GAP * k + 4), shift);
            }
        }
    }
    if constexpr (DIGITS == 1) {
        drop_unused_bits(out);
    }
}

#if WIDE
typedef i64 Total;
#else
typedef i32 Total;
#endif

// A sum of its byte products.
template <class Sum, i32 N> __device__ __forceinline__ Sum joined(const i32 (&bands)[N])
{
    Sum sum = bands[0];
#pragma unroll
    for (i32 i = 1; i < N; ++i) {
        sum = sum * 256 + bands[i];
    }
    return sum;
}

// Values of two products whose windows share what is read, from their sums, of which each has N parts: the two products' first row of results, then the second.
// join(parts, k) makes value k.
template <i32 N, class Join> __device__ __forceinline__ void join_sums(i32 (&values)[8], const i32 (&sums)[2][N][4], const Join &join)
{
#pragma unroll
    for (i32 k = 0; k < 8; ++k) {
        i32 parts[N];
#pragma unroll
        for (i32 i = 0; i < N; ++i) {
            parts[i] = sums[k / 2 % 2][i][k / 4 * 2 + k % 2];
        }
        values[k] = join(parts, k);
    }
}

// A sum shifted down, and cut to the range of samples. Sums of 8-bit samples that fit 32 bits are cut when they are packed.
__device__ __forceinline__ i32 finish(const Planes &planes, const Plane &plane, Total total, i32 sample)
{
    if (WIDE || !SAME_BIAS) {
        total += (Total)(SAME_BIAS ? shared_bias(plane) : plane.channel[sample % CHANNELS].low);
    }
    total >>= planes.shift;
    if (SAMPLE_BYTES == 1 && !WIDE) {
        return (i32)total;
    }
    total = total < 0 ? 0 : total;
    total = total > planes.max_value ? planes.max_value : total;
    return (i32)total << SAMPLE_SHIFT;
}

// Neighbouring results as they lie in memory.
template <i32 N> __device__ __forceinline__ void pack(u32 (&words)[N], const i32 (&values)[4 * N / SAMPLE_BYTES])
{
#pragma unroll
    for (i32 k = 0; k < N; ++k) {
        if constexpr (SAMPLE_BYTES == 1) {
            words[k] = pack_4(values[4 * k], values[4 * k + 1], values[4 * k + 2], values[4 * k + 3]);
        } else {
            words[k] = __byte_perm(values[2 * k], values[2 * k + 1], 0x5410);
        }
    }
}

// Components that are not convolved take the sample from before the step, or a new value.
template <i32 N> __device__ __forceinline__ void keep_others(const Plane &plane, i32 x, i32 y, u32 (&words)[N])
{
    constexpr u32 MASK = SAMPLE_BYTES == 1 ? 0xff : 0xffff;
    const Sample *kept = (const Sample *)(plane.original + (i64)y * plane.original_pitch);
#pragma unroll
    for (i32 k = 0; k < 4 * N / SAMPLE_BYTES; ++k) {
        const i32 sample = x / SAMPLE_BYTES + k, bit = 8 * (k * SAMPLE_BYTES % 4);
        const i32 c = sample % CHANNELS;
        if (!is_convolved(c) && sample < plane.width * CHANNELS) {
            const i32 fill = plane.channel[c].fill;
            const u32 value = fill < 0 ? (u32)kept[sample] : (u32)fill << SAMPLE_SHIFT;
            u32 &w = words[k * SAMPLE_BYTES / 4];
            w = (w & ~(MASK << bit)) | value << bit;
        }
    }
}

// True if every component of a result is at hand.
constexpr bool whole_results = every_channel || (WEIGHED && (CONVOLVED | 1 << ALPHA_BYTE) == (1 << CHANNELS) - 1);

// The lanes of a warp hold parts of a run of results that lie beside each other in memory; `before` is the lane with the part before this one.
struct Run {
    i32 before;
    bool first;
    bool last;
};

// A lane's results: parts of 4 N bytes, the first at byte x of row y, others in rows below it. All lanes of a warp call its functions together.
template <bool ALIGNED, i32 N> struct Output {
    const Plane &plane;
    const Run run;
    const i32 x, y;
    const i32 left;  // bytes from there to where the row's results end
    const i32 rows;  // rows from there to the plane's end
    u8 *out;         // in the row that is written next
    i32 row = 0;
    u32 transparent = 0;  // a bit for each pixel that is not restored yet, the last one's the lowest: set if it has no alpha

    // `end` is the byte of the rows at which results end, if they do not go on to the rows' own end.
    __device__ __forceinline__ Output(const Plane &plane, const Run &run, i32 x, i32 y, i32 end = 0x7fffffff)
        : plane(plane), run(run), x(x), y(y), left(min(plane.width * PIXEL_BYTES, end) - x), rows(!ALIGNED || left > 0 ? plane.height - y : 0),
          out(plane.result + (i64)y * plane.result_pitch + x)
    {
    }

    // Divides colours that were weighed by alpha by it, and writes the pixels as number `index` of COUNT rows: component(k, c, more) is `more` and what the mask made of
    // component c of pixel k, `alphas` are the pixels' before the step.
    template <i32 COUNT, class Component>
    __device__ __forceinline__ void put_straight(i32 index, const Component &component, const Alphas<N> &alphas, i32 step)
    {
        constexpr i32 AT_ONCE = 32 / N;
        u32 words[N];
#pragma unroll
        for (i32 k = 0; k < N; ++k) {
            // A sum begins with `more`.
            const auto convolved = [&](u32 more) { return component(k, ALPHA_BYTE, more); };
            const auto weight = [&](u32 more) {
                return NORMALISE || FILTER_ALPHA ? convolved(more) : byte_of(alphas.word(k), alphas.byte(k), more);
            };
            const u32 colours[4] = {component(k, 0, 0), component(k, 1, 0), component(k, 2, 0), component(k, 3, 0)};
            words[k] = straight(colours, weight(FLOAT_BITS), FILTER_ALPHA ? convolved(0) : alphas.word(k), FILTER_ALPHA ? 0 : alphas.byte(k));
            // In comes a set bit where 1 less than nothing is below 0.
            transparent = __funnelshift_l(weight(~0u), transparent, 1);
        }
        put(words, step);
        if (index % AT_ONCE == AT_ONCE - 1 || index == COUNT - 1) {
            restore(index % AT_ONCE + 1, step);
        }
    }

    // Of the last `count` rows, the colours that there was no alpha to divide by are those from before. That comes after all rows, so that nobody waits for
    // it where there are none.
    __device__ __forceinline__ void restore(i32 count, i32 step)
    {
        if (!ALIGNED) {
            // Lanes write some bytes for each other.
            __syncwarp();
        }
        if (transparent == 0) {
            return;
        }
        constexpr u32 COLOURS = CONVOLVED & ~(1 << ALPHA_BYTE);
#pragma unroll 1
        for (i32 i = count - 1; i >= 0; --i, transparent >>= N) {
            const i32 r = row + (i - count) * step;
            const u8 *before = plane.original + (i64)(y + r) * plane.original_pitch + x;
            u8 *after = plane.result + (i64)(y + r) * plane.result_pitch + x;
            u32 pixels[N];
            auto is_restored = [&](i32 k) { return (transparent >> (N - 1 - k) & 1) && r < rows && 4 * k < left; };
#pragma unroll
            for (i32 k = 0; k < N; ++k) {
                if (is_restored(k)) {
                    const u8 *p = before + 4 * k;
                    pixels[k] = ALIGNED ? word(p) : p[0] | p[1] << 8 | p[2] << 16 | (u32)p[3] << 24;
                }
            }
#pragma unroll
            for (i32 k = 0; k < N; ++k) {
                if (is_restored(k)) {
#pragma unroll
                    for (i32 c = 0; c < 4; ++c) {
                        if (COLOURS >> c & 1) {
                            after[4 * k + c] = (u8)(pixels[k] >> 8 * c);
                        }
                    }
                }
            }
        }
        static_assert(N < 32, "a row's bits can be shifted out");
    }

    // Writes the next row, and goes `step` rows down from it.
    __device__ __forceinline__ void put(u32 (&words)[N], i32 step)
    {
        const bool inside = row < rows;
        if (row == 0) {
            // Not before that, so that small frames are convolved side by side. Others may still read what lies where results go, or write there.
            wait_for_earlier_launches();
        }
        if (!whole_results && inside) {
            keep_others(plane, x, y + row, words);
        }
        if (ALIGNED) {
            // What follows a row up to a multiple of 16 bytes is nobody's.
            constexpr i32 AT_ONCE = N % 4 == 0 ? 4 : 2;
#pragma unroll
            for (i32 k = 0; k < N; k += AT_ONCE) {
                if (inside && (k == 0 || 4 * k < left)) {
                    if constexpr (AT_ONCE == 4) {
                        *(uint4 *)(out + 4 * k) = make_uint4(words[k], words[k + 1], words[k + 2], words[k + 3]);
                    } else {
                        *(uint2 *)(out + 4 * k) = make_uint2(words[k], words[k + 1]);
                    }
                }
            }
        } else {
            const u32 earlier = __shfl_sync(~0u, words[N - 1], run.before);
            if (inside) {
                put_unaligned(words, earlier);
            }
        }
        out += plane.result_pitch * step;
        row += step;
    }

    // Whole words of memory, of which the first ends the part before; what is left of the run's ends goes byte by byte.
    __device__ __forceinline__ void put_unaligned(const u32 (&words)[N], u32 earlier)
    {
        const i32 off = (i32)((u32)(unsigned long long)out & 3);
        const i32 shift = 8 * (4 - off) & 31;
        if (left >= 4 * N) {
            u32 *whole = (u32 *)(out - off);
#pragma unroll
            for (i32 k = 0; k < N; ++k) {
                const u32 value = __funnelshift_r(k == 0 ? earlier : words[k - 1], words[k], shift);
                if (k > 0 || !run.first || off == 0) {
                    whole[k] = off == 0 ? words[k] : value;
                }
            }
            if (off != 0 && (run.first || run.last)) {
                u8 *edge = run.first ? out : out + 4 * N - off;
                const u32 bytes = run.first ? words[0] : words[N - 1] >> shift;
                const i32 count = run.first ? 4 - off : off;
#pragma unroll
                for (i32 k = 0; k < 3; ++k) {
                    if (k < count) {
                        edge[k] = (u8)(bytes >> 8 * k);
                    }
                }
            }
            return;
        }
        // The row ends here: its last bytes, with those that the part before left to this lane.
#pragma unroll
        for (i32 k = -3; k < 4 * N; ++k) {
            const u32 from = k < 0 ? earlier : words[k < 0 ? 0 : k / 4];
            if (k < left && (k >= 0 || (!run.first && k >= -off))) {
                out[k] = (u8)(from >> 8 * (k & 3));
            }
        }
    }
};
