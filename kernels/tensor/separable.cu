// Separable masks on tensor cores, both passes in one launch: the row pass leaves its results in the
// registers in which the column pass needs its operand.
//
// The row pass multiplies 16 results' weights with 8 rows of pixels, the column pass 16 rows' weights with 8
// columns of the intermediate. Rows are worked on in groups of 16. A warp goes down a strip of 32 samples.
// Parameters beside those of tensor/tile/geometry.cuh, whose BANDS are the row pass's:
//   ROW_SLICES      K-slices of 16 bytes of a row under 16 results; COLUMN_GROUPS: groups of 16 rows under 16
//                   results
//   COLUMN_BYTES    signed bytes of a column's weight, up to three
//   START           the byte of a tile's row at which its first K-slice begins
//   STEPS           groups of 16 result rows that a warp goes down; UNROLL: how many of them are unrolled, a
//                   divisor of STEPS
//   SPLIT_SUM32     1: wide sums are joined in 32 bits, without the lowest 8 or 16 bits of the row pass's
//                   sums and 16 or 24 of the column pass's, which the divisions shift out. `can_split_sum32`
//                   in src/engine/cuda/kernels/tensor/separable.rs says when.
#include "tensor/epilogue.cuh"
#include "tensor/tile/pipeline.cuh"

// Bytes of a value between the passes: 16 signed bits, or 24 where sums take 64.
constexpr i32 BETWEEN_BYTES = WIDE ? 3 : 2;
// Sums of byte products that make up one sum of the column pass.
constexpr i32 SUMS = COLUMN_BYTES + BETWEEN_BYTES - 1;

// Products of 32 bytes, and one of 16 if a half is left.
constexpr i32 ROW_WHOLE = ROW_SLICES / 2, COLUMN_WHOLE = COLUMN_GROUPS / 2;
constexpr bool ROW_HALF = ROW_SLICES % 2, COLUMN_HALF = COLUMN_GROUPS % 2;
// With two groups, the older one is by turns the first and the second half of a product's bytes, so that no
// register is moved. That takes two layouts of the weights, for which wide masks lack registers.
constexpr bool DOUBLE_LAYOUT = COLUMN_GROUPS == 2 && BETWEEN_BYTES == 2;
// Groups of 16 rows that are read before there is a result.
constexpr i32 AHEAD = COLUMN_GROUPS - 1;
static_assert(STEPS % UNROLL == 0 && (!DOUBLE_LAYOUT || UNROLL % 2 == 0 || UNROLL == STEPS),
              "the layouts alternate from one turn of the loop to the next, too");
// True if the lower 8 rows of the last group are not needed.
constexpr bool LAST_IS_HALF = (15 + MASK_H + 7) / 8 % 2 == 1 && UNROLL == STEPS;
// A lane's results: four neighbours of either half of the strip's samples.
constexpr i32 SIDES = 2;
constexpr i32 STRIP = 32 * SAMPLE_BYTES;

struct Bands {
    u32 row[BANDS][ROW_WHOLE + 1][4];
    u32 row_half[BANDS][2];
    u32 column[DOUBLE_LAYOUT ? 2 : 1][COLUMN_BYTES][COLUMN_WHOLE + 1][4];
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
    for (i32 turn = 0; turn < (DOUBLE_LAYOUT ? 2 : 1); ++turn) {
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

// Joins the limbs of a sum of the row pass, the last of which began with `row_start`, and shifts it right to
// a value of the intermediate.
//
// A band has at most 63 products of bytes, or twice as many in the middle, and lies within 2^22, and the
// start within 2^29. So two joined bands fit 32 bits, and three do up to 12-bit samples and weights of two
// bytes.
__device__ __forceinline__ i32 between_passes(const i32 (&bands)[BANDS], i32 row_shift)
{
    if constexpr (WIDE && BANDS == 3) {
        const i32 upper = bands[0] * 256 + bands[1];
        if constexpr (SPLIT_SUM32) {
            return (upper + (bands[2] >> 8)) >> (row_shift - 8);
        }
        return (i32)(((i64)upper * 256 + bands[2]) >> row_shift);
    }
    if constexpr (WIDE && BANDS == 4) {
        if constexpr (SPLIT_SUM32) {
            const i32 upper = bands[0] * 256 + bands[1], lower = bands[2] * 256 + bands[3];
            return (upper + (lower >> 16)) >> (row_shift - 16);
        }
        return (i32)(joined<i64>(bands) >> row_shift);
    }
    return joined<i32>(bands) >> row_shift;
}

// The intermediate of 8 columns, byte by byte, the signed high bytes first. Of each group of 16 rows this
// lane has four values of one column.
struct Intermediate {
    u32 bytes[BETWEEN_BYTES][COLUMN_GROUPS];
};

// Splits values of two blocks of 8 rows, rows 2t and 2t + 1 of each, into the bytes of the intermediate's
// group `group`.
__device__ __forceinline__ void split(const i32 (&upper)[2], const i32 (&lower)[2], Intermediate &to,
                                      i32 group)
{
    const u32 a = __byte_perm(upper[0], upper[1], 0x5140), b = __byte_perm(lower[0], lower[1], 0x5140);
    to.bytes[BETWEEN_BYTES - 1][group] = __byte_perm(a, b, 0x5410);
    to.bytes[BETWEEN_BYTES - 2][group] = __byte_perm(a, b, 0x7632);
    if constexpr (BETWEEN_BYTES == 3) {
        const u32 c = __byte_perm(upper[0], upper[1], 0x62), d = __byte_perm(lower[0], lower[1], 0x62);
        to.bytes[0][group] = __byte_perm(c, d, 0x5410);
    }
}

// Adds the products of one byte of the column's weights with one byte of the intermediate, signed or not.
__device__ __forceinline__ void add_column(i32 (&d)[4], const i32 (&begin)[4], bool is_signed,
                                           const u32 (&weights)[COLUMN_WHOLE + 1][4], const u32 (&half)[2],
                                           const u32 (&values)[COLUMN_GROUPS])
{
#pragma unroll
    for (i32 k = 0; k < COLUMN_WHOLE; ++k) {
        const u32(&w)[4] = weights[k];
        const i32(&c)[4] = select_ref(k == 0, begin, d);
        if (is_signed) {
            multiply_weights_signed(d, w[0], w[1], w[2], w[3], values[2 * k], values[2 * k + 1], c);
        } else {
            multiply_weights_pixels(d, w[0], w[1], w[2], w[3], values[2 * k], values[2 * k + 1], c);
        }
    }
    if (COLUMN_HALF) {
        const i32(&c)[4] = select_ref(COLUMN_WHOLE == 0, begin, d);
        if (is_signed) {
            multiply_weights_signed_16(d, half[0], half[1], values[COLUMN_GROUPS - 1], c);
        } else {
            multiply_weights_pixels_16(d, half[0], half[1], values[COLUMN_GROUPS - 1], c);
        }
    }
}

// SPLIT_SUM32: the last sum of the column pass begins with this many low bits of the bias, and the sum whose
// unit is 2^BIAS_BITS with the bits above.
constexpr i32 BIAS_BITS = SUMS == 5 ? 24 : 16;

// The start values of the column pass's sums: of the last one, and of the one that begins with the upper
// bits.
struct Starts {
    const i32 (&last)[4];
    const i32 (&upper)[4];
};

// The column pass for 16 rows and 8 columns: byte i of the weights times byte j of the intermediate goes to
// sum i + j. A sum has at most 63 times three products of bytes, and so lies within 2^23 of its start value.
template <i32 N>
__device__ __forceinline__ void multiply_column(i32 (&sums)[N][4], const Starts &starts, const Bands &bands,
                                                i32 turn, const Intermediate &between)
{
    const i32 zero[4] = {};
#pragma unroll
    for (i32 j = 0; j < BETWEEN_BYTES; ++j) {
#pragma unroll
        for (i32 i = 0; i < COLUMN_BYTES; ++i) {
            i32(&sum)[4] = sums[i + j];
            const i32(&start)[4] =
                select_ref(i + j == SUMS - 1, starts.last,
                           select_ref(SPLIT_SUM32 && i + j == SUMS - 1 - BIAS_BITS / 8, starts.upper, zero));
            const i32(&begin)[4] = select_ref(j == 0 || i == COLUMN_BYTES - 1, start, sum);
            add_column(sum, begin, j == 0, bands.column[turn][i], bands.column_half[i], between.bytes[j]);
        }
    }
}

// Joins sums of the column pass, which began with the bias, in 32 bits and requantizes them. Of three or four
// sums the last two are joined first, and lose their lowest 16 bits; they are at most 2^30 together, plus 16
// bits of the bias. The others are at most 2^29 together, plus 2^29 of the bias. Of five sums the middle one
// is added to these two, which then lose 8 bits more; the others are at most 2^28 together, plus 2^29 of the
// bias without its 24 low bits.
__device__ __forceinline__ i32 finish_split_sum32(const Planes &planes, const i32 (&sums)[SUMS])
{
    const i32 lower = (sums[SUMS - 2] * 256 + sums[SUMS - 1]) >> 16;
    i32 value;
    if constexpr (SUMS == 5) {
        value = (sums[0] * 256 + sums[1] + ((sums[2] + lower) >> 8)) >> (planes.shift - 24);
    } else {
        i32 upper = sums[0];
#pragma unroll
        for (i32 i = 1; i < SUMS - 2; ++i) {
            upper = upper * 256 + sums[i];
        }
        value = (upper + lower) >> (planes.shift - 16);
    }
    return min(max(value, 0), planes.max_value) << SAMPLE_SHIFT;
}

// Gathers element `i` of a lane's part of several products.
template <i32 N> __device__ __forceinline__ void gather(i32 (&one)[N], const i32 (&products)[N][4], i32 i)
{
#pragma unroll
    for (i32 k = 0; k < N; ++k) {
        one[k] = products[k][i];
    }
}

// A lane's words of a row for the row pass: word_of(side, k) is that of a side's K-slice k.
template <bool ALIGNED> struct RowSlices {
    static constexpr i32 READ = ROW_SLICES + SAMPLE_BYTES;
    u32 words[READ];

    __device__ __forceinline__ void read(const u8 *row, i32 strip, i32 t)
    {
        read_words<ALIGNED, READ, 16, START % 4>(words, row, START + strip + 4 * t);
    }

    __device__ __forceinline__ u32 word_of(i32 side, i32 k) const
    {
        return words[side * SAMPLE_BYTES + k];
    }
};

// The row pass for 8 rows of one side: four values of the intermediate.
template <bool ALIGNED>
__device__ __forceinline__ void multiply_row(i32 (&values)[4], const Bands &bands,
                                             const RowSlices<ALIGNED> &slices, i32 side,
                                             const i32 (&rounding)[4], i32 row_shift)
{
    const i32 zero[4] = {};
    i32 sums[BANDS][4];
#pragma unroll
    for (i32 i = 0; i < BANDS; ++i) {
        const i32(&begin)[4] = select_ref(i == BANDS - 1, rounding, zero);
#pragma unroll
        for (i32 k = 0; k < ROW_WHOLE; ++k) {
            const u32(&w)[4] = bands.row[i][k];
            const u32 low = slices.word_of(side, 2 * k), high = slices.word_of(side, 2 * k + 1);
            multiply_weights_pixels(sums[i], w[0], w[1], w[2], w[3], low, high,
                                    select_ref(k == 0, begin, sums[i]));
        }
        if (ROW_HALF) {
            const u32(&w)[2] = bands.row_half[i];
            const u32 last = slices.word_of(side, ROW_SLICES - 1);
            multiply_weights_pixels_16(sums[i], w[0], w[1], last, select_ref(ROW_WHOLE == 0, begin, sums[i]));
        }
    }
#pragma unroll
    for (i32 k = 0; k < 4; ++k) {
        i32 one[BANDS];
        gather(one, sums, k);
        values[k] = between_passes(one, row_shift);
    }
}

// The column pass for 16 rows of one side: packs four samples of row g and four of row g + 8. The first of
// them is number `first` of its row.
__device__ __forceinline__ void finish_side(u32 (&parts)[2][SAMPLE_BYTES], const Planes &planes,
                                            const Plane &plane, const Starts &starts, const Bands &bands,
                                            i32 turn, const Intermediate (&between)[2], i32 first)
{
    // Narrow sums are kept until all are there. Wide ones need more registers, and are finished one product
    // at a time.
    constexpr i32 KEPT = BETWEEN_BYTES == 2 ? SUMS : 1;
    i32 results[2][KEPT][4];
#pragma unroll
    for (i32 n = 0; n < 2; ++n) {
        auto &kept = results[n];
        if constexpr (KEPT == SUMS) {
            multiply_column(kept, starts, bands, turn, between[n]);
        } else {
            i32 sums[SUMS][4];
            multiply_column(sums, starts, bands, turn, between[n]);
#pragma unroll
            for (i32 i = 0; i < 4; ++i) {
                i32 one[SUMS];
                gather(one, sums, i);
                if constexpr (SPLIT_SUM32) {
                    kept[0][i] = finish_split_sum32(planes, one);
                } else {
                    kept[0][i] = finish(planes, plane, joined<Total>(one), first + 2 * n + i % 2);
                }
            }
        }
    }
#pragma unroll
    for (i32 h = 0; h < 2; ++h) {
        i32 four[4];
#pragma unroll
        for (i32 k = 0; k < 4; ++k) {
            i32 one[KEPT];
            gather(one, results[k / 2], 2 * h + k % 2);
            if constexpr (KEPT == SUMS) {
                four[k] = finish(planes, plane, joined<Total>(one), first + k);
            } else {
                four[k] = one[0];
            }
        }
        pack(parts[h], four);
    }
}

// A warp's state while it goes down a strip of a tile.
template <bool ALIGNED> struct Strip {
    const Planes &planes;
    const Plane &plane;
    const Starts &starts;
    const Bands &bands;
    const i32 (&rounding)[4];
    const i32 row_shift;
    const i32 first;  // the number of the lane's first sample in its row
    // [side][n]: the columns that the row pass's products hold in rows g (n = 0) and in rows g + 8.
    Intermediate between[SIDES][2];

    // The row pass for the next 16 rows, of which the lower eight may be missing, and from pass AHEAD on the
    // column pass for the results that they complete: four samples of each side of rows g and of rows g + 8.
    __device__ __forceinline__ void pass(u32 (&parts)[2][SIDES][SAMPLE_BYTES],
                                         const RowSlices<ALIGNED> (&slices)[2], i32 s, bool has_lower)
    {
#pragma unroll
        for (i32 side = 0; side < SIDES; ++side) {
            i32 values[2][4] = {};
            multiply_row(values[0], bands, slices[0], side, rounding, row_shift);
            if (has_lower) {
                multiply_row(values[1], bands, slices[1], side, rounding, row_shift);
            }
#pragma unroll
            for (i32 n = 0; n < 2; ++n) {
                Intermediate &b = between[side][n];
                const i32 upper[2] = {values[0][2 * n], values[0][2 * n + 1]},
                          lower[2] = {values[1][2 * n], values[1][2 * n + 1]};
                if constexpr (!DOUBLE_LAYOUT) {
#pragma unroll
                    for (i32 k = 0; k < AHEAD; ++k) {
#pragma unroll
                        for (i32 j = 0; j < BETWEEN_BYTES; ++j) {
                            b.bytes[j][k] = b.bytes[j][k + 1];
                        }
                    }
                }
                split(upper, lower, b, DOUBLE_LAYOUT ? s % 2 : AHEAD);
            }
            if (s >= AHEAD) {
                u32 finished[2][SAMPLE_BYTES];
                finish_side(finished, planes, plane, starts, bands, DOUBLE_LAYOUT ? (s - AHEAD) % 2 : 0,
                            between[side], first + 16 * side);
#pragma unroll
                for (i32 h = 0; h < 2; ++h) {
#pragma unroll
                    for (i32 k = 0; k < SAMPLE_BYTES; ++k) {
                        parts[h][side][k] = finished[h][k];
                    }
                }
            }
        }
    }
};

template <bool ALIGNED>
__device__ __forceinline__ void convolve_tile(const Planes &planes, const Tiles &tiles, const Plane &plane,
                                              const Tile &tile, const u8 *stage, const Starts &starts,
                                              const i32 (&rounding)[4], const Bands &bands)
{
    const i32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    const i32 wx = warp % WARPS_X * STRIP, wy = warp / WARPS_X * (16 * STEPS);
    // Two lanes exchange results of the two sides, so that each has neighbouring results of one side.
    const i32 left = wx + (t & 1 ? 12 + 4 * t : 4 * t) * SAMPLE_BYTES;
    const Run run{t == 1 ? lane + 1 : lane - 2, t == 0, t == 3};
    constexpr i32 WORDS = SIDES * SAMPLE_BYTES;
    Output<ALIGNED, WORDS> output(plane, run, tile.x + left, tile.y + wy + g);
    Strip<ALIGNED> strip{
        planes, plane, starts, bands, rounding, tiles.row_shift, (tile.x + wx) / SAMPLE_BYTES + 4 * t};
    // Lanes with neighbouring g read rows that are four apart, whose bytes lie in other banks. The column's
    // weights are in this order.
    const u8 *row = stage + (wy + g / 2 + g % 2 * 4) * pitch<ALIGNED>;
    const auto pass = [&](u32(&parts)[2][SIDES][SAMPLE_BYTES], i32 s, bool has_lower) {
        RowSlices<ALIGNED> slices[2];
        slices[0].read(row, wx, t);
        if (has_lower) {
            slices[1].read(row + 8 * pitch<ALIGNED>, wx, t);
        }
        row += 16 * pitch<ALIGNED>;
        strip.pass(parts, slices, s, has_lower);
    };
#pragma unroll
    for (i32 s = 0; s < AHEAD; ++s) {
        u32 none[2][SIDES][SAMPLE_BYTES];
        pass(none, s, true);
    }
#pragma unroll 1
    for (i32 step = 0; step < STEPS; step += UNROLL) {
#pragma unroll
        for (i32 k = 0; k < UNROLL; ++k) {
            u32 parts[2][SIDES][SAMPLE_BYTES] = {};
            pass(parts, AHEAD + k, !LAST_IS_HALF || k < UNROLL - 1);
#pragma unroll
            for (i32 h = 0; h < 2; ++h) {
                const auto &half = parts[h];
                u32 words[WORDS] = {};
                // Of each side, the neighbouring lane has the four samples beside this lane's.
#pragma unroll
                for (i32 i = 0; i < SAMPLE_BYTES; ++i) {
                    const u32 other = __shfl_xor_sync(~0u, t & 1 ? half[0][i] : half[1][i], 1);
                    words[i] = t & 1 ? other : half[0][i];
                    words[SAMPLE_BYTES + i] = t & 1 ? half[1][i] : other;
                }
                output.store(words, 8);
            }
        }
    }
}

template <bool ALIGNED, class Loader>
__device__ __forceinline__ void convolve(const Planes &planes, const Tiles &tiles, const Loader &loader)
{
    Bands bands;
    read_bands(bands, tiles.fragments);
    __shared__ volatile i32 half[4];
    if (threadIdx.x < 4) {
        half[threadIdx.x] = tiles.row_start;
    }
    // [plane][0]: the low bits of the bias; [1]: the bits above.
    __shared__ volatile i32 bias[4][2][4];
    if (SPLIT_SUM32 && threadIdx.x < 32) {
        const i64 whole = shared_bias(planes.at[threadIdx.x / 8]);
        bias[threadIdx.x / 8][threadIdx.x / 4 % 2][threadIdx.x % 4] =
            threadIdx.x / 4 % 2 ? (i32)(whole >> BIAS_BITS) : (i32)(whole & ((1 << BIAS_BITS) - 1));
    }
    __syncthreads();
    i32 rounding[4];
    read_four(rounding, half);
    const auto work = [&](const u8 *stage, const Plane &plane, const Tile &tile, const i32(&start)[4]) {
        if constexpr (SPLIT_SUM32) {
            i32 last[4], upper[4];
            read_four(last, bias[tile.plane][0]);
            read_four(upper, bias[tile.plane][1]);
            convolve_tile<ALIGNED>(planes, tiles, plane, tile, stage, Starts{last, upper}, rounding, bands);
        } else {
            convolve_tile<ALIGNED>(planes, tiles, plane, tile, stage, Starts{start, start}, rounding, bands);
        }
    };
    for_each_tile<ALIGNED>(planes, tiles, loader, work);
}

#include "tensor/entries.cuh"
