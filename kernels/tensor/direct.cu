// Direct masks on tensor cores: pixels as they lie in memory times Toeplitz bands of weights.
//
// A K-slice is 16 bytes of one row and the 16 below them. One product takes 16 K-slices and gives 8 results
// of each. Parameters beside those of tensor/tile/geometry.cuh:
//   SHARED_SLICES   1: two products take the same K-slices, 8 bytes apart, and give 8 x 2 results of each
//   COLUMNS         otherwise, results of a K-slice beside each other: 4 in 2 rows, or 2 in 4 rows
//   PAIRS           pairs of rows under a K-slice's results; SLICES: K-slices beside each other under them
//   START           the byte of a tile's row at which its first K-slice begins
//   STEPS           K-slices below each other that a warp works on
//   RESIDENT        1: all weights stay in registers; 0: they are read when they are needed, each time for
//                   STEPS K-slices below each other
//
// With two masks a lane gets the sums of both, in as many bands each; the epilogue makes an absolute value or
// a magnitude of sums (common/combining.cuh). The largest of eight sums takes no products
// (tensor/compass.cuh).
#include "common/combining.cuh"
#include "tensor/compass.cuh"
#include "tensor/epilogue.cuh"
#include "tensor/small_mask.cuh"
#include "tensor/tile/pipeline.cuh"

static_assert(COMBINING == LINEAR || DIGITS == 1, "sums over the bytes of samples are joined for one mask");

#if SHARED_SLICES

typedef SharedBands<PAIRS, BANDS> Bands;

__device__ __forceinline__ void read_bands(Bands &bands, const u32 *fragments)
{
    bands.read(fragments);
}

constexpr i32 WIDTH = 16;     // samples beside each other that the lanes with the same g work on
constexpr i32 ROWS_DOWN = 2;  // rows of a K-slice's results
constexpr bool TWO_ROWS = true;

// Calls take(s, values) with this lane's eight values of each step s, in order. The lane reads from byte
// `offset` of `row` on. join(parts, k) makes a value out of its sums; k counts the results of a row from the
// first K-slice of the lanes with the same g on.
template <bool ALIGNED, class Join, class Take>
__device__ __forceinline__ void convolve_slices(const u8 *row, i32 offset, const i32 (&start)[4],
                                                const Bands &bands, const Join &join, const Take &take)
{
    static_assert(FIRST_BYTE % 4 == 0, "K-slices begin at whole words");
    convolve_shared<ALIGNED, false, row_pitch<ALIGNED>, STEPS>(row, offset, start, bands, join, take);
}

// Packs this lane's eight values to eight neighbouring results, after an exchange with the neighbouring lane.
__device__ __forceinline__ void pack_slice(u32 (&words)[2 * SAMPLE_BYTES], const i32 (&values)[8])
{
    u32 mine[2 * SAMPLE_BYTES];
    pack(mine, values);
    exchange_halves(words, mine);
}

#else

constexpr i32 WIDTH = 4 * COLUMNS;      // samples beside each other that the lanes with the same g work on
constexpr i32 ROWS_DOWN = 8 / COLUMNS;  // rows of a K-slice's results
constexpr bool TWO_ROWS = COLUMNS == 4;
constexpr i32 PAIRS_DOWN = ROWS_DOWN / 2;
// The pairs of rows under STEPS K-slices that are in registers at a time.
constexpr i32 RING = RESIDENT ? PAIRS : PAIRS_DOWN * (STEPS - 1) + 1;

struct Bands {
    const u32 *fragments;
    Weights at[RESIDENT ? PAIRS : 1][BANDS];
};

__device__ __forceinline__ void read_bands(Bands &bands, const u32 *fragments)
{
    bands.fragments = fragments;
    if constexpr (RESIDENT) {
#pragma unroll
        for (i32 j = 0; j < PAIRS; ++j) {
#pragma unroll
            for (i32 i = 0; i < BANDS; ++i) {
                bands.at[j][i] = read_weights(fragments, j * BANDS + i);
            }
        }
    }
}

// Sums of a K-slice's results. [u]: of two products whose K-slices are read together.
typedef i32 Sums[2][BANDS][4];

// Words of two rows of four K-slices: product u takes words u and u + 2, as its rows g and g + 8.
typedef u32 Pair[2][4];

__device__ __forceinline__ void add(Sums &sums, const Pair &p, const Weights (&weights)[BANDS], bool begin,
                                    const i32 (&start)[4])
{
    const i32 zero[4] = {};
#pragma unroll
    for (i32 u = 0; u < 2; ++u) {
#pragma unroll
        for (i32 i = 0; i < BANDS; ++i) {
            i32(&d)[4] = sums[u][i];
            const i32(&c)[4] = select_ref(begin, select_ref(i == BANDS - 1, start, zero), d);
            multiply_pixels_weights(d, p[0][u], p[0][u + 2], p[1][u], p[1][u + 2], weights[i].low,
                                    weights[i].high, c);
        }
    }
}

// Packs this lane's eight values to eight neighbouring results. With two columns they are neighbours already;
// with four, lanes exchange halves with the neighbouring lane.
__device__ __forceinline__ void pack_slice(u32 (&words)[2 * SAMPLE_BYTES], const i32 (&values)[8])
{
    const bool odd = threadIdx.x & 1;
    if constexpr (COLUMNS == 2) {
        pack(words, values);
    } else {
        u32 mine[2 * SAMPLE_BYTES];
        pack(mine, values);
        // The lane with an even number takes the first half of both lanes' pairs, the other one the second.
#pragma unroll
        for (i32 k = 0; k < SAMPLE_BYTES; ++k) {
            const u32 kept = odd ? mine[SAMPLE_BYTES + k] : mine[k];
            const u32 other = __shfl_xor_sync(~0u, odd ? mine[k] : mine[SAMPLE_BYTES + k], 1);
            const u32 first = odd ? other : kept, second = odd ? kept : other;
            if constexpr (SAMPLE_BYTES == 1) {
                words[0] = __byte_perm(first, second, 0x5410);
                words[1] = __byte_perm(first, second, 0x7632);
            } else {
                words[2 * k] = first;
                words[2 * k + 1] = second;
            }
        }
    }
}

// Calls take(s, values) with this lane's eight values of each step s, in order. The lane reads from byte
// `offset` of `row` on. join(parts, k) makes a value out of its sums; k counts the results of a row from the
// first K-slice of the lanes with the same g on.
template <bool ALIGNED, class Join, class Take>
__device__ __forceinline__ void convolve_slices(const u8 *row, i32 offset, const i32 (&start)[4],
                                                const Bands &bands, const Join &join, const Take &take)
{
    Pair ring[RING];
    auto read_pair = [&](i32 slot, i32 k, i32 slice) {
#pragma unroll
        for (i32 r = 0; r < 2; ++r) {
            read_words<ALIGNED, 4, COLUMNS * UNIT, FIRST_BYTE % 4>(
                ring[slot][r], row + (2 * k + r) * row_pitch<ALIGNED>, offset + 16 * slice);
        }
    };
    auto end = [&](i32 s, const Sums &sums) {
        i32 values[8];
        // Pairs of neighbours are two columns apart, or four.
        const i32 first = COLUMNS == 4 && (threadIdx.x & 1) ? 2 : 0;
        join_sums(values, sums, [&](const i32(&parts)[BANDS], i32 k) {
            return join(parts, k / 2 * COLUMNS + k % 2 + first);
        });
        take(s, values);
    };
    if constexpr (RESIDENT) {
#pragma unroll
        for (i32 k = 0; k < PAIRS - PAIRS_DOWN; ++k) {
            read_pair(k, k, 0);
        }
#pragma unroll
        for (i32 s = 0; s < STEPS; ++s) {
#pragma unroll
            for (i32 k = PAIRS - PAIRS_DOWN; k < PAIRS; ++k) {
                read_pair((s * PAIRS_DOWN + k) % RING, s * PAIRS_DOWN + k, 0);
            }
            Sums sums;
#pragma unroll
            for (i32 j = 0; j < PAIRS; ++j) {
                add(sums, ring[(s * PAIRS_DOWN + j) % RING], bands.at[j], j == 0, start);
            }
            end(s, sums);
        }
    } else {
        Sums sums[STEPS];
#pragma unroll
        for (i32 s = 0; s < STEPS; ++s) {
#pragma unroll
            for (i32 u = 0; u < 2; ++u) {
#pragma unroll
                for (i32 i = 0; i < BANDS; ++i) {
#pragma unroll
                    for (i32 k = 0; k < 4; ++k) {
                        sums[s][u][i][k] = i == BANDS - 1 ? start[k] : 0;
                    }
                }
            }
        }
#pragma unroll 1
        for (i32 slice = 0; slice < SLICES; ++slice) {
            // Multiplies row pair j of the mask. For step s its values lie s * PAIRS_DOWN ring slots after
            // `slot`.
            auto multiply = [&](i32 slot, i32 j) {
                read_pair((slot + RING - 1) % RING, j + RING - 1, slice);
                Weights weights[BANDS];
#pragma unroll
                for (i32 i = 0; i < BANDS; ++i) {
                    weights[i] = read_weights(bands.fragments, (slice * PAIRS + j) * BANDS + i);
                }
#pragma unroll
                for (i32 s = 0; s < STEPS; ++s) {
                    add(sums[s], ring[(slot + s * PAIRS_DOWN) % RING], weights, false, start);
                }
            };
#pragma unroll
            for (i32 k = 0; k < RING - 1; ++k) {
                read_pair(k, k, slice);
            }
            if constexpr (PAIRS <= 2 * RING) {
#pragma unroll
                for (i32 j = 0; j < PAIRS; ++j) {
                    multiply(j % RING, j);
                }
            } else {
#pragma unroll 1
                for (i32 j = 0; j + RING <= PAIRS; j += RING) {
#pragma unroll
                    for (i32 k = 0; k < RING; ++k) {
                        multiply(k, j + k);
                    }
                }
#pragma unroll
                for (i32 k = 0; k < PAIRS % RING; ++k) {
                    multiply(k, PAIRS / RING * RING + k);
                }
            }
        }
#pragma unroll
        for (i32 s = 0; s < STEPS; ++s) {
            end(s, sums[s]);
        }
    }
}

#endif

static_assert(COMBINING != LARGEST || (TWO_ROWS && WIDTH == 16), "a lane makes eight results side by side");

// Requantizes a number that sums are combined to.
__device__ __forceinline__ i32 finish_number(const Planes &planes, const Plane &plane, Total number,
                                             i32 sample)
{
    const Channel &channel = plane.channel[SAME_BIAS ? first_convolved : sample % CHANNELS];
    return requantize(planes, number + (Total)channel.high);
}

// Joins a result's sums of byte products, combines those of several masks, and requantizes.
template <i32 N>
__device__ __forceinline__ i32 finish_parts(const Planes &planes, const Plane &plane, const i32 (&parts)[N],
                                            i32 sample)
{
    if constexpr (COMBINING == LINEAR || COMBINING == LARGEST) {
        return finish(planes, plane, joined<Total>(parts), sample);
    } else {
        constexpr i32 EACH = N / MASKS;
        Total sums[MASKS];
#pragma unroll
        for (i32 m = 0; m < MASKS; ++m) {
            i32 own[EACH];
#pragma unroll
            for (i32 i = 0; i < EACH; ++i) {
                own[i] = parts[m * EACH + i];
            }
            sums[m] = joined<Total>(own);
        }
        Total number;
        if constexpr (COMBINING == ABSOLUTE) {
            number = sums[0] + missing_bias(plane, sample);
            number = number < 0 ? -number : number;
        } else {
            number = scaled_root((i32)sums[0], (i32)sums[MASKS - 1]);
        }
        return finish_number(planes, plane, number, sample);
    }
}

// Convolves a warp's part of a deinterleaved tile, one component after the other, and stores the results
// interleaved again. The lane reads from byte `offset` of `row` of each component's part on.
template <class Results>
__device__ __forceinline__ void convolve_components(const Planes &planes, const Plane &plane, const u8 *row,
                                                    i32 offset, const i32 (&start)[4], const Bands &bands,
                                                    Results &output)
{
    constexpr i32 WORDS = 2 * SAMPLE_BYTES;  // eight results
    const i32 zero[4] = {};
    u32 kept[STEPS][WORDS][CHANNELS];
#pragma unroll
    for (i32 c = 0; c < CHANNELS; ++c) {
        auto keep = [&](i32 s, const i32(&values)[8]) {
            u32 words[WORDS];
            pack_slice(words, values);
#pragma unroll
            for (i32 k = 0; k < WORDS; ++k) {
                kept[s][k][c] = words[k];
            }
        };
        if (is_convolved(c)) {
            // Keeps the compiler from reading the next component early, which would cost registers.
            __syncwarp();
            const u8 *part = row + c * DIGITS * PART;
            if constexpr (DIGITS == 1) {
                const auto whole = [&](const i32(&parts)[BANDS], i32) {
                    return finish_parts(planes, plane, parts, c);
                };
                convolve_slices<true>(part, offset, start, bands, whole, keep);
            } else {
                // Sums over the bytes of samples fit 32 bits (docs/arithmetic.md).
                const auto sum = [](const i32(&parts)[BANDS], i32) { return joined<i32>(parts); };
                i32 high[STEPS][8];
                convolve_slices<true>(part + PART, offset, zero, bands, sum,
                                      [&](i32 s, const i32(&values)[8]) {
#pragma unroll
                                          for (i32 k = 0; k < 8; ++k) {
                                              high[s][k] = values[k];
                                          }
                                      });
                convolve_slices<true>(part, offset, start, bands, sum, [&](i32 s, const i32(&low)[8]) {
                    i32 values[8];
#pragma unroll
                    for (i32 k = 0; k < 8; ++k) {
                        values[k] = finish(planes, plane, (Total)high[s][k] * 256 + low[k], c);
                    }
                    keep(s, values);
                });
            }
        }
    }
#pragma unroll
    for (i32 s = 0; s < STEPS; ++s) {
        u32 words[WORDS * CHANNELS];
#pragma unroll
        for (i32 k = 0; k < WORDS; ++k) {
            u32 pixels[CHANNELS];
            interleave(pixels, kept[s][k]);
#pragma unroll
            for (i32 c = 0; c < CHANNELS; ++c) {
                words[CHANNELS * k + c] = pixels[c];
            }
        }
        output.store(words, ROWS_DOWN);
    }
}

template <bool ALIGNED>
__device__ __forceinline__ void convolve_tile(const Planes &planes, const Tiles &tiles, const Plane &plane,
                                              const Tile &tile, const u8 *stage, const i32 (&start)[4],
                                              const Bands &bands)
{
    constexpr i32 WORDS = 2 * SAMPLE_BYTES;  // eight results
    const i32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
    // Bytes of a part, and rows, from the tile's first result to the first of the lanes with the same g.
    const i32 across = (warp % WARPS_X * 8 + g) * WIDTH * UNIT, down = warp / WARPS_X * (ROWS_DOWN * STEPS);
    // Where this lane's results begin in the tile.
    const i32 left = PARTS * (TWO_ROWS ? across + 8 * UNIT * (t & 1) : across),
              top = down + (TWO_ROWS ? t / 2 : t);
    const Run run = TWO_ROWS ? Run{t & 1 ? lane - 1 : lane - 3, g == 0 && !(t & 1), g == 7 && (t & 1)}
                             : Run{lane - 4, g == 0, g == 7};
    Output<ALIGNED, COMPONENTS * WORDS> output(plane, run, tile.x + left, tile.y + top);
    const u8 *row = stage + down * row_pitch<ALIGNED>;
    const i32 offset = FIRST_BYTE + across + 4 * t;
    if constexpr (DEINTERLEAVE) {
        convolve_components(planes, plane, row, offset, start, bands, output);
    } else if constexpr (COMBINING == LARGEST) {
        const u8 *above = stage + top * pitch<ALIGNED>;
        const i32 sample = (tile.x + left) / SAMPLE_BYTES;
        const u32 bias = 0x10001 * (u32)plane.channel[first_convolved].high;
        largest_around<ALIGNED, STEPS>(above, LEFT + left, bias, [&](i32, const Made &made) {
            u32 words[WORDS];
            if constexpr (BYTES_IN_HALVES) {
                words[0] = made[0];
                words[1] = made[1];
            } else {
                i32 values[8];
#pragma unroll
                for (i32 k = 0; k < 8; ++k) {
                    values[k] = finish_number(planes, plane, made[k], sample + k);
                }
                pack(words, values);
            }
            output.store(words, ROWS_DOWN);
        });
    } else {
        const i32 sample = (tile.x + across) / SAMPLE_BYTES;
        const auto whole = [&](const i32(&parts)[BANDS], i32 k) {
            return finish_parts(planes, plane, parts, sample + k);
        };
        convolve_slices<ALIGNED>(row, offset, start, bands, whole, [&](i32 s, const i32(&values)[8]) {
            u32 words[WORDS];
            pack_slice(words, values);
            output.store(words, ROWS_DOWN);
        });
    }
}

template <bool ALIGNED, class Loader>
__device__ __forceinline__ void convolve(const Planes &planes, const Tiles &tiles, const Loader &loader)
{
    Bands bands;
    read_bands(bands, tiles.fragments);
    const auto work = [&](const u8 *stage, const Plane &plane, const Tile &tile, const i32(&start)[4]) {
        convolve_tile<ALIGNED>(planes, tiles, plane, tile, stage, start, bands);
    };
    for_each_tile<ALIGNED>(planes, tiles, loader, work);
}

#include "tensor/entries.cuh"
