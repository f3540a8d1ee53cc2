// A separable mask on tensor cores, both passes in one launch: what the row pass leaves in a lane's registers is what the column pass wants there.
//
// The row pass multiplies 16 results' weights with 8 rows of pixels, the column pass 16 rows' weights with 8 columns of the intermediate. Rows are
// worked on in groups of 16. A warp goes down a strip of 32 samples. Parameters beside those of tensor.cuh, whose BANDS are the row pass's:
//   ROW_PIECES      16-byte pieces of a row under 16 results; COLUMN_GROUPS: groups of 16 rows under 16 results
//   COLUMN_BYTES    signed bytes of a column's weight
//   START           the byte of a tile's row at which its first window begins
//   STEPS           groups of 16 result rows that a warp goes down
#include "tensor.cuh"

constexpr i32 ROW_WHOLE = ROW_PIECES / 2, COLUMN_WHOLE = COLUMN_GROUPS / 2;
constexpr bool ROW_HALF = ROW_PIECES % 2, COLUMN_HALF = COLUMN_GROUPS % 2;
// With two groups the older one lies in the first half of a product's bytes or in the second by turns, so that nothing needs to move.
constexpr bool TURNS = COLUMN_GROUPS == 2;

struct Bands {
    u32 row[BANDS][ROW_WHOLE + 1][4];
    u32 row_half[BANDS][2];
    u32 column[TURNS ? 2 : 1][COLUMN_BYTES][COLUMN_WHOLE + 1][4];
    u32 column_half[COLUMN_BYTES][2];
};

template <i32 N> __device__ __forceinline__ void read_weights(u32 (&to)[N], const u32 *&fragments)
{
#pragma unroll
    for (i32 k = 0; k < N; ++k) {
        to[k] = __ldg(fragments + threadIdx.x % 32);
        fragments += 32;
    }
}

__device__ __forceinline__ void read_bands(Bands &bands, const u32 *fragments)
{
#pragma unroll
    for (i32 i = 0; i < BANDS; ++i) {
#pragma unroll
        for (i32 k = 0; k < ROW_WHOLE; ++k) {
            read_weights(bands.row[i][k], fragments);
        }
        if (ROW_HALF) {
            read_weights(bands.row_half[i], fragments);
        }
    }
#pragma unroll
    for (i32 turn = 0; turn < (TURNS ? 2 : 1); ++turn) {
#pragma unroll
        for (i32 i = 0; i < COLUMN_BYTES; ++i) {
#pragma unroll
            for (i32 k = 0; k < COLUMN_WHOLE; ++k) {
                read_weights(bands.column[turn][i][k], fragments);
            }
            if (COLUMN_HALF) {
                read_weights(bands.column_half[i], fragments);
            }
        }
    }
}

// The intermediate of 16 rows and 8 columns, in this lane four values of one column: their high bytes and their low ones.
struct Intermediate {
    u32 high[COLUMN_GROUPS];
    u32 low[COLUMN_GROUPS];
};

// Intermediate values of two blocks of 8 rows: rows 2t and 2t + 1 of both, joined to high and low bytes.
__device__ __forceinline__ void split(const i32 (&upper)[2], const i32 (&lower)[2], u32 &high, u32 &low)
{
    const u32 a = __byte_perm(upper[0], upper[1], 0x5140), b = __byte_perm(lower[0], lower[1], 0x5140);
    low = __byte_perm(a, b, 0x5410);
    high = __byte_perm(a, b, 0x7632);
}

// Adds the products of a column's weight bytes `weights` with bytes of the intermediate.
template <bool SIGNED>
__device__ __forceinline__ void add_column(i32 (&d)[4], const i32 (&begin)[4], const u32 (&weights)[COLUMN_WHOLE + 1][4], const u32 (&half)[2],
                                           const u32 (&values)[COLUMN_GROUPS])
{
#pragma unroll
    for (i32 k = 0; k < COLUMN_WHOLE; ++k) {
        const u32(&w)[4] = weights[k];
        const i32(&c)[4] = either(k == 0, begin, d);
        if (SIGNED) {
            multiply_weights_signed(d, w[0], w[1], w[2], w[3], values[2 * k], values[2 * k + 1], c);
        } else {
            multiply_weights_pixels(d, w[0], w[1], w[2], w[3], values[2 * k], values[2 * k + 1], c);
        }
    }
    if (COLUMN_HALF) {
        const i32(&c)[4] = either(COLUMN_WHOLE == 0, begin, d);
        if (SIGNED) {
            multiply_weights_signed_16(d, half[0], half[1], values[COLUMN_GROUPS - 1], c);
        } else {
            multiply_weights_pixels_16(d, half[0], half[1], values[COLUMN_GROUPS - 1], c);
        }
    }
}

template <bool ALIGNED>
__device__ __forceinline__ void convolve_tile(const Planes &planes, const Tiles &tiles, const Plane &plane, const Tile &tile, const u8 *stage,
                                              const i32 (&start)[4], const i32 (&rounding)[4], const Bands &bands)
{
    const i32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    const i32 wx = warp % WARPS_X * (32 * SAMPLE_BYTES), wy = warp / WARPS_X * (16 * STEPS);
    const i32 zero[4] = {};
    const i32 row_shift = tiles.row_shift;
    const i32 x = tile.x + wx + (t & 1 ? (12 + 4 * t) * SAMPLE_BYTES : 4 * t * SAMPLE_BYTES);
    const Run run{t == 1 ? lane + 1 : lane - 2, t == 0, t == 3};
    Output<ALIGNED, 2 * SAMPLE_BYTES> output(plane, run, x, tile.y + wy + g);
    // Of each block of 16 columns: the columns that products hold in rows g, and those in rows g + 8.
    Intermediate between[2][2];
#pragma unroll
    for (i32 s = 0; s < STEPS + COLUMN_GROUPS - 1; ++s) {
        // The row pass for 16 rows.
        i32 values[2][2][4];
#pragma unroll
        for (i32 block = 0; block < 2; ++block) {
            constexpr i32 READ = ROW_PIECES + SAMPLE_BYTES;
            u32 pixels[READ];
            const u8 *row = stage + (wy + 16 * s + 8 * block + g) * pitch<ALIGNED>;
            read_words<ALIGNED, READ, 16, START % 4>(pixels, row, START + wx + 4 * t);
#pragma unroll
            for (i32 side = 0; side < 2; ++side) {
                i32 sums[BANDS][4];
                const u32 *p = pixels + side * SAMPLE_BYTES;
#pragma unroll
                for (i32 i = 0; i < BANDS; ++i) {
                    const i32(&begin)[4] = either(i == BANDS - 1, rounding, zero);
#pragma unroll
                    for (i32 k = 0; k < ROW_WHOLE; ++k) {
                        const u32(&w)[4] = bands.row[i][k];
                        multiply_weights_pixels(sums[i], w[0], w[1], w[2], w[3], p[2 * k], p[2 * k + 1], either(k == 0, begin, sums[i]));
                    }
                    if (ROW_HALF) {
                        const u32(&w)[2] = bands.row_half[i];
                        multiply_weights_pixels_16(sums[i], w[0], w[1], p[ROW_PIECES - 1], either(ROW_WHOLE == 0, begin, sums[i]));
                    }
                }
#pragma unroll
                for (i32 k = 0; k < 4; ++k) {
                    i32 sum = sums[0][k];
#pragma unroll
                    for (i32 i = 1; i < BANDS; ++i) {
                        sum = sum * 256 + sums[i][k];
                    }
                    values[block][side][k] = sum >> row_shift;
                }
            }
        }
#pragma unroll
        for (i32 side = 0; side < 2; ++side) {
#pragma unroll
            for (i32 n = 0; n < 2; ++n) {
                Intermediate &b = between[side][n];
                const i32 upper[2] = {values[0][side][2 * n], values[0][side][2 * n + 1]};
                const i32 lower[2] = {values[1][side][2 * n], values[1][side][2 * n + 1]};
                if constexpr (TURNS) {
                    split(upper, lower, b.high[s % 2], b.low[s % 2]);
                } else {
#pragma unroll
                    for (i32 k = 0; k + 1 < COLUMN_GROUPS; ++k) {
                        b.high[k] = b.high[k + 1];
                        b.low[k] = b.low[k + 1];
                    }
                    split(upper, lower, b.high[COLUMN_GROUPS - 1], b.low[COLUMN_GROUPS - 1]);
                }
            }
        }
        if (s < COLUMN_GROUPS - 1) {
            continue;
        }
        // The column pass for the 16 rows whose window is complete.
        const i32 done = s - (COLUMN_GROUPS - 1);
        const auto &column = bands.column[TURNS ? done % 2 : 0];
        constexpr i32 BYTES = COLUMN_BYTES + 1;
        i32 results[2][2][BYTES][4];
#pragma unroll
        for (i32 side = 0; side < 2; ++side) {
#pragma unroll
            for (i32 n = 0; n < 2; ++n) {
                const Intermediate &b = between[side][n];
                auto &d = results[side][n];
                const auto &half = bands.column_half;
                if constexpr (COLUMN_BYTES == 2) {
                    add_column<true>(d[0], zero, column[0], half[0], b.high);
                    add_column<true>(d[1], zero, column[1], half[1], b.high);
                    add_column<false>(d[1], d[1], column[0], half[0], b.low);
                    add_column<false>(d[2], start, column[1], half[1], b.low);
                } else {
                    add_column<true>(d[0], zero, column[0], half[0], b.high);
                    add_column<false>(d[1], start, column[0], half[0], b.low);
                }
            }
        }
#pragma unroll
        for (i32 h = 0; h < 2; ++h) {
            // Four samples on either side in this lane; its neighbour has the four beside them.
            u32 parts[2][SAMPLE_BYTES];
#pragma unroll
            for (i32 side = 0; side < 2; ++side) {
                i32 finished[4];
#pragma unroll
                for (i32 k = 0; k < 4; ++k) {
                    i32 bytes[BYTES];
#pragma unroll
                    for (i32 i = 0; i < BYTES; ++i) {
                        bytes[i] = results[side][k / 2][i][2 * h + k % 2];
                    }
                    const i32 sample = (tile.x + wx) / SAMPLE_BYTES + 16 * side + 4 * t + k;
                    finished[k] = finish(planes, plane, bytes, sample);
                }
                pack(parts[side], finished);
            }
            u32 words[2 * SAMPLE_BYTES];
#pragma unroll
            for (i32 k = 0; k < SAMPLE_BYTES; ++k) {
                const u32 other = __shfl_xor_sync(~0u, t & 1 ? parts[0][k] : parts[1][k], 1);
                words[k] = t & 1 ? other : parts[0][k];
                words[SAMPLE_BYTES + k] = t & 1 ? parts[1][k] : other;
            }
            output.put(words, 8);
        }
    }
}

template <bool ALIGNED, class Loader> __device__ __forceinline__ void convolve(const Planes &planes, const Tiles &tiles, const Loader &loader)
{
    Bands bands;
    read_bands(bands, tiles.fragments);
    __shared__ volatile i32 half[4];
    if (threadIdx.x < 4) {
        half[threadIdx.x] = (1 << tiles.row_shift) >> 1;
    }
    __syncthreads();
    i32 rounding[4];
    read_four(rounding, half);
    for_each_tile<ALIGNED>(planes, tiles, loader, [&](const u8 *stage, const Plane &plane, const Tile &tile, const i32(&start)[4]) {
        convolve_tile<ALIGNED>(planes, tiles, plane, tile, stage, start, rounding, bands);
    });
}

#include "tensor_entries.cuh"
