// Convolution of pixels in a tile in shared memory, for up to four channels.
//
//                 PAD    BLOCK_W * 4 samples     PAD
//               +------+-----------------------+------+
//     MASK_H/2  |                halo                 |   a row has its components interleaved, so that
//               +------+-----------------------+------+   the next tap is CHANNELS samples further
//               |      | t0 t0 t0 t0 t1 t1 ..  |      |
//     ROWS      | halo | t0 t0 t0 t0           | halo |   thread t has four neighbouring samples in
//               |      | ..                    |      |   OUTPUTS rows
//               +------+-----------------------+------+
//     MASK_H/2  |                halo                 |
//               +------+-----------------------+------+
//
// PAD is the mask's reach to a side, rounded up so that each quad of samples is an aligned word of 16 bytes
// of the tile. A quad is loaded by one asynchronous copy (32-bit samples) or one load, and read from the tile
// and stored by one instruction each. A thread reads a row once for all of its outputs.
//
// Levels are multiplied by alpha while they are loaded. Where a thread's four samples are whole pixels with
// their alpha, it also divides, and stores levels (DIVIDED).
//
// Compile-time parameters, beside those of float/plane.cuh:
//   ROLLED  1: the mask is too large to unroll: its rows are a loop, and its weights lie in shared memory
//           behind the tile
#pragma once

#include "float/plane.cuh"

constexpr i32 THREADS = BLOCK_W * BLOCK_H;
constexpr i32 ROWS = BLOCK_H * OUTPUTS;
constexpr i32 REACH = RX * CHANNELS;
constexpr i32 PAD = (REACH + 3) / 4 * 4;
// Samples of a thread's first quad that lie before the first tap of its first sample.
constexpr i32 LEAD = PAD - REACH;
constexpr i32 TILE_W = BLOCK_W * 4 + 2 * PAD;
constexpr i32 TILE_H = ROWS + MASK_H - 1;
// Taps whose samples a thread holds at a time; a multiple of four, so that each lot begins with a quad.
constexpr i32 LOT = CHANNELS <= 2 ? 16 : CHANNELS == 3 ? 12 : 8;

__device__ __forceinline__ u32 bits_of(float x)
{
    return (u32)__float_as_int(x);
}

// Words of 32 bits in a quad.
constexpr i32 QUAD_WORDS = SAMPLE_BYTES;

// A quad as it is stored, and its alpha where that has a plane of its own.
struct Stored {
    u32 words[QUAD_WORDS];
#if LEVELS
    u32 alpha[QUAD_WORDS];
#endif
};

__device__ __forceinline__ void load_words(u32 (&words)[QUAD_WORDS], const u8 *row, i32 sample)
{
    const u8 *from = row + sample * SAMPLE_BYTES;
    if constexpr (QUAD_WORDS == 4) {
        const uint4 four = __ldg((const uint4 *)from);
        words[0] = four.x;
        words[1] = four.y;
        words[2] = four.z;
        words[3] = four.w;
    } else if constexpr (QUAD_WORDS == 2) {
        const uint2 two = __ldg((const uint2 *)from);
        words[0] = two.x;
        words[1] = two.y;
    } else {
        words[0] = __ldg((const u32 *)from);
    }
}

__device__ __forceinline__ void load_quad(Stored &quad, const FloatPlane &plane, i32 sample, i32 y)
{
    load_words(quad.words, plane.source + (i64)y * plane.source_pitch, sample);
#if LEVELS
    if (ALPHA < 0 && plane.alpha != nullptr) {
        load_words(quad.alpha, plane.alpha + (i64)y * plane.alpha_pitch, sample);
    }
#endif
}

#if LEVELS
static_assert(CHANNELS == 1 || CHANNELS == 2 || CHANNELS == 4, "quads are whole pixels");

// 2^23 and the level of sample `v` of four: the sample's bytes below those of 2^23.
__device__ __forceinline__ float raised(const u32 (&words)[QUAD_WORDS], i32 v)
{
    const u32 word = words[v * SAMPLE_BYTES / 4];
    if constexpr (SAMPLE_BYTES == 1) {
        return __int_as_float((i32)__byte_perm(word, RAISED_BITS, 0x7440 | v));
    } else if constexpr (SAMPLE_SHIFT == 0) {
        return __int_as_float((i32)__byte_perm(word, RAISED_BITS, v % 2 ? 0x7432 : 0x7410));
    }
    const u32 sample = word >> 16 * (v % 2) & 0xffff;
    return __int_as_float((i32)(RAISED_BITS | sample >> SAMPLE_SHIFT));
}

// The numbers to convolve of a quad of levels.
__device__ __forceinline__ uint4 numbers_of(const FloatPlane &plane, const Stored &quad)
{
    u32 made[4];
#pragma unroll
    for (i32 v = 0; v < 4; ++v) {
        const i32 c = v % CHANNELS;
        // Both are whole numbers of up to 24 bits: their difference is exact.
        float value = __fadd_rn(raised(quad.words, v), -(RAISED + channel_of(plane, c).level));
        if (ALPHA >= 0 && c != ALPHA) {
            value = __fmul_rn(value, __fadd_rn(raised(quad.words, v - c + ALPHA), -RAISED));
        } else if (ALPHA < 0 && plane.alpha != nullptr) {
            value = __fmul_rn(value, __fadd_rn(raised(quad.alpha, v), -RAISED));
        }
        made[v] = bits_of(value);
    }
    return make_uint4(made[0], made[1], made[2], made[3]);
}
#else
// The numbers to convolve of a quad of floating-point samples.
__device__ __forceinline__ uint4 numbers_of(const FloatPlane &, const Stored &quad)
{
    const u32(&words)[QUAD_WORDS] = quad.words;
    if constexpr (QUAD_WORDS == 4) {
        return make_uint4(words[0], words[1], words[2], words[3]);
    }
    return make_uint4(bits_of(widened((u16)words[0])), bits_of(widened((u16)(words[0] >> 16))),
                      bits_of(widened((u16)words[1])), bits_of(widened((u16)(words[1] >> 16))));
}
#endif

// Where one quad of the tile comes from.
struct Quad {
    i32 sample;  // its first sample in the plane's row, which may lie outside
    i32 y;       // the plane's row, or -1 where the border holds a constant
    bool whole;  // it lies within the row, and the row is aligned
    bool needed;
};

__device__ __forceinline__ Quad quad_of(const FloatPlane &plane, bool aligned, i32 k, i32 left, i32 top)
{
    constexpr i32 QUADS = TILE_W / 4;
    const i32 samples = plane.width * CHANNELS;
    Quad quad;
    quad.sample = left - PAD + k % QUADS * 4;
    quad.y = border_index(top + k / QUADS, plane.height);
    quad.whole = aligned && quad.y >= 0 && quad.sample >= 0 && quad.sample + 4 <= samples;
    quad.needed = k < QUADS * TILE_H && quad.sample < samples + PAD && top + k / QUADS < plane.height + RY;
    return quad;
}

// Reads a quad sample by sample, outside the plane by the border.
__device__ __forceinline__ void read_singly(float *to, const FloatPlane &plane, const Quad &quad)
{
    // Pixels that are added before the division by CHANNELS, so that no number is negative.
    constexpr i32 BEFORE = (PAD + CHANNELS - 1) / CHANNELS;
#pragma unroll 1
    for (i32 v = 0; v < 4; ++v) {
        const i32 at = quad.sample + v + BEFORE * CHANNELS, c = at % CHANNELS;
        const i32 x = border_index(at / CHANNELS - BEFORE, plane.width);
        to[v] = BORDER_IS_CONSTANT && (x < 0 || quad.y < 0) ? channel_of(plane, c).border
                                                            : number_at<Sample>(plane, x, quad.y, c);
    }
}

// Fills the tile: its first row is the plane's row `top`, its first quad PAD samples before `left`.
__device__ __forceinline__ void load_tile(float *tile, const FloatPlanes &planes, const FloatPlane &plane,
                                          i32 left, i32 top)
{
    constexpr i32 QUADS = TILE_W / 4, COUNT = QUADS * TILE_H;
    const i32 me = threadIdx.y * BLOCK_W + threadIdx.x;
    if constexpr (!LEVELS && SAMPLE_BYTES == 4 && COPIES_ASYNCHRONOUSLY) {
#pragma unroll 1
        for (i32 k = me; k < COUNT; k += THREADS) {
            const Quad quad = quad_of(plane, planes.aligned, k, left, top);
            if (quad.needed && quad.whole) {
                copy(shared_address(tile + 4 * k),
                     plane.source + (i64)quad.y * plane.source_pitch + quad.sample * SAMPLE_BYTES);
            } else if (quad.needed) {
                read_singly(tile + 4 * k, plane, quad);
            }
        }
        end_of_copies();
        // An empty group: the wait is for all groups but the last.
        end_of_copies();
        wait_for_copies();
    } else {
        // Several loads are under way before the first one is waited for.
        constexpr i32 BATCH = LEVELS && SAMPLE_BYTES == 1 ? 8 : 4;
        // Uniform in the block: most tiles lie within the plane and need no border.
        const bool within = planes.aligned && left >= PAD && top >= 0 &&
                            left - PAD + TILE_W <= plane.width * CHANNELS && top + TILE_H <= plane.height;
        if (within) {
#pragma unroll 1
            for (i32 first = me; first < COUNT; first += BATCH * THREADS) {
                Stored stored[BATCH] = {};
#pragma unroll
                for (i32 b = 0; b < BATCH; ++b) {
                    const i32 k = first + b * THREADS;
                    if (k < COUNT) {
                        load_quad(stored[b], plane, left - PAD + k % QUADS * 4, top + k / QUADS);
                    }
                }
#pragma unroll
                for (i32 b = 0; b < BATCH; ++b) {
                    const i32 k = first + b * THREADS;
                    if (k < COUNT) {
                        *(uint4 *)(tile + 4 * k) = numbers_of(plane, stored[b]);
                    }
                }
            }
            return;
        }
        constexpr i32 EDGE_BATCH = 4;
#pragma unroll 1
        for (i32 first = me; first < COUNT; first += EDGE_BATCH * THREADS) {
            Stored stored[EDGE_BATCH] = {};
            bool whole[EDGE_BATCH];
#pragma unroll
            for (i32 b = 0; b < EDGE_BATCH; ++b) {
                const Quad quad = quad_of(plane, planes.aligned, first + b * THREADS, left, top);
                whole[b] = quad.needed && quad.whole;
                if (whole[b]) {
                    load_quad(stored[b], plane, quad.sample, quad.y);
                }
            }
#pragma unroll
            for (i32 b = 0; b < EDGE_BATCH; ++b) {
                if (whole[b]) {
                    *(uint4 *)(tile + 4 * (first + b * THREADS)) = numbers_of(plane, stored[b]);
                }
            }
        }
        // In a loop of its own, so that the code is there once.
#pragma unroll 1
        for (i32 k = me; k < COUNT; k += THREADS) {
            const Quad quad = quad_of(plane, planes.aligned, k, left, top);
            if (quad.needed && !quad.whole) {
                read_singly(tile + 4 * k, plane, quad);
            }
        }
    }
}

// Loads each of the block's tiles and calls work(first), where `first` is the tile's first row of results.
// All threads of the block call this. Reads `source` at once if `planes.is_ready`, else after earlier
// launches; `work` waits for these itself before it writes.
template <class Work>
__device__ __forceinline__ void each_tile(float *tile, const FloatPlanes &planes, const FloatPlane &plane,
                                          const Work &work)
{
    const i32 left = (i32)blockIdx.x * BLOCK_W * 4;
    // The grid fits the largest plane of the launch.
    if (left >= plane.width * CHANNELS) {
        return;
    }
    let_next_launch_begin();
    if (!planes.is_ready) {
        wait_for_earlier_launches();
    }
    // The rows of tiles are a loop, since a grid's y may not exceed 65535.
    for (i64 first = (i64)blockIdx.y * ROWS; first < plane.height; first += (i64)gridDim.y * ROWS) {
        load_tile(tile, planes, plane, left, (i32)first - RY);
        // No thread reads the tile before all of it is there...
        __syncthreads();
        work((i32)first);
        // ...and none overwrites it before all have read it.
        __syncthreads();
    }
}

// The samples of a row that TAPS taps of the thread's four samples read.
template <i32 TAPS> struct Window {
    static constexpr i32 COUNT = (LEAD + 4 + CHANNELS * (TAPS - 1) + 3) / 4;
    float samples[4 * COUNT];

    __device__ __forceinline__ explicit Window(const float *from)
    {
#pragma unroll
        for (i32 q = 0; q < COUNT; ++q) {
            const uint4 four = *(const uint4 *)(from + 4 * q);
            samples[4 * q] = __int_as_float((i32)four.x);
            samples[4 * q + 1] = __int_as_float((i32)four.y);
            samples[4 * q + 2] = __int_as_float((i32)four.z);
            samples[4 * q + 3] = __int_as_float((i32)four.w);
        }
    }

    __device__ __forceinline__ float under(i32 tap, i32 v) const
    {
        return samples[LEAD + CHANNELS * tap + v];
    }
};

// A thread's sums: of each mask, in each of its rows, for its four samples.
typedef float Sums[MASKS][OUTPUTS][4];

// Rows of weights in shared memory begin with a word of 16 bytes.
constexpr i32 WEIGHTS_W = (MASK_W + 3) / 4 * 4;

// The weights of an unrolled mask, in constant or in global memory.
template <class Weights> struct UnrolledWeights {
    const Weights &weights;

    // Weights `first` to `first` + N of a row of mask `m`.
    template <i32 N> __device__ __forceinline__ void read(float (&four)[4], i32 m, i32 row, i32 first) const
    {
#pragma unroll
        for (i32 k = 0; k < N; ++k) {
            four[k] = weights[(m * MASK_H + row) * MASK_W + first + k];
        }
    }
};

// The weights of a mask whose rows are a loop, in shared memory.
struct SharedWeights {
    const float *weights;

    template <i32 N> __device__ __forceinline__ void read(float (&four)[4], i32 m, i32 row, i32 first) const
    {
        const uint4 words = *(const uint4 *)(weights + (m * MASK_H + row) * WEIGHTS_W + first);
        four[0] = __int_as_float((i32)words.x);
        four[1] = __int_as_float((i32)words.y);
        four[2] = __int_as_float((i32)words.z);
        four[3] = __int_as_float((i32)words.w);
    }
};

// Adds the products of TAPS taps, from tap `first` on. `row` lies `j` rows below the first row under the mask
// of the thread's first output.
template <i32 TAPS, class Weights>
__device__ __forceinline__ void add_taps(Sums &sums, const float *row, i32 j, i32 first,
                                         const Weights &weights)
{
    const Window<TAPS> window(row + first * CHANNELS);
#pragma unroll
    for (i32 o = 0; o < OUTPUTS; ++o) {
        if (j < o || j - o >= MASK_H) {
            continue;
        }
#pragma unroll
        for (i32 m = 0; m < MASKS; ++m) {
#pragma unroll
            for (i32 i = 0; i < TAPS; i += 4) {
                constexpr i32 LAST = TAPS % 4 == 0 ? 4 : TAPS % 4;
                float four[4];
                if (i + 4 <= TAPS) {
                    weights.template read<4>(four, m, j - o, first + i);
                } else {
                    weights.template read<LAST>(four, m, j - o, first + i);
                }
#pragma unroll
                for (i32 k = 0; k < 4; ++k) {
#pragma unroll
                    for (i32 v = 0; v < 4; ++v) {
                        if (i + k < TAPS) {
                            sums[m][o][v] = __fmaf_rn(four[k], window.under(i + k, v), sums[m][o][v]);
                        }
                    }
                }
            }
        }
    }
}

// Adds all taps of whole masks. `mine`: the thread's first quad in the first row under its first output.
template <class Weights>
__device__ __forceinline__ void add_masks(Sums &sums, const float *mine, const Weights &weights)
{
    constexpr i32 UNDER = MASK_H + OUTPUTS - 1, REST = MASK_W % LOT;
    constexpr i32 UNROLL_ROWS = ROLLED ? 1 : UNDER, UNROLL_LOTS = ROLLED ? 1 : MASK_W / LOT + 1;
#pragma unroll UNROLL_ROWS
    for (i32 j = 0; j < UNDER; ++j) {
        const float *row = mine + j * TILE_W;
#pragma unroll UNROLL_LOTS
        for (i32 first = 0; first < MASK_W - REST; first += LOT) {
            add_taps<LOT>(sums, row, j, first, weights);
        }
        if constexpr (REST > 0) {
            add_taps<REST>(sums, row, j, MASK_W - REST, weights);
        }
    }
}

// The sums of whole masks, which begin with `start(c)`, for each row of each tile: `finish(sample, y, o,
// sums)` for row `y`, the thread's row `o`.
template <class Weights, class Start, class Finish>
__device__ __forceinline__ void correlate_tiles(float *tile, const FloatPlanes &planes,
                                                const FloatPlane &plane, const Weights &weights,
                                                const Start &start, const Finish &finish)
{
    float *shared_weights = tile + TILE_W * TILE_H;
    if constexpr (ROLLED) {
        const i32 me = threadIdx.y * BLOCK_W + threadIdx.x;
#pragma unroll 1
        for (i32 k = me; k < MASKS * MASK_H * WEIGHTS_W; k += THREADS) {
            const i32 row = k / WEIGHTS_W, column = k % WEIGHTS_W;
            shared_weights[k] = column < MASK_W ? weights[row * MASK_W + column] : 0.0f;
        }
    }
    const i32 sample = ((i32)blockIdx.x * BLOCK_W + (i32)threadIdx.x) * 4;
    each_tile(tile, planes, plane, [&](i32 first) {
        Sums sums;
#pragma unroll
        for (i32 v = 0; v < 4; ++v) {
            const float begin = start((sample + v) % CHANNELS);
#pragma unroll
            for (i32 k = 0; k < MASKS * OUTPUTS; ++k) {
                sums[k / OUTPUTS][k % OUTPUTS][v] = begin;
            }
        }
        const float *mine = tile + threadIdx.y * OUTPUTS * TILE_W + threadIdx.x * 4;
        if constexpr (ROLLED) {
            add_masks(sums, mine, SharedWeights{shared_weights});
        } else {
            add_masks(sums, mine, UnrolledWeights<Weights>{weights});
        }
        wait_for_earlier_launches();
#pragma unroll
        for (i32 o = 0; o < OUTPUTS; ++o) {
            const i32 y = first + (i32)threadIdx.y * OUTPUTS + o;
            if (sample < plane.width * CHANNELS && y < plane.height) {
                finish(sample, y, o, sums);
            }
        }
    });
}

#if LEVELS && DIVIDED
static_assert(ALPHA >= 0, "a thread divides colours by the alpha beside them");

__device__ __forceinline__ bool is_filtered(i32 c)
{
    return FILTERED >> c & 1;
}

// Loads four stored samples; those beyond the row become zero.
__device__ __forceinline__ void load_original(u32 (&words)[QUAD_WORDS], const FloatPlanes &planes,
                                              const FloatPlane &plane, i32 sample, i32 y, i32 rest)
{
    const u8 *row = plane.original + (i64)y * plane.original_pitch;
    if (planes.aligned && rest >= 4) {
        load_words(words, row, sample);
        return;
    }
#pragma unroll
    for (i32 k = 0; k < QUAD_WORDS; ++k) {
        words[k] = 0;
#pragma unroll 1
        for (i32 i = 0; i < 4 / SAMPLE_BYTES; ++i) {
            const i32 v = 4 / SAMPLE_BYTES * k + i;
            if (v < rest) {
                words[k] |= (u32)__ldg((const Sample *)row + sample + v) << 8 * SAMPLE_BYTES * i;
            }
        }
    }
}

// Divides a pixel's sums by alpha. `made` and `was` are its levels after and before, plus 2^23.
__device__ __forceinline__ void divide(u32 (&made)[4], const FloatPlanes &planes, const FloatPlane &plane,
                                       const float (&sums)[4], const float (&was)[4], i32 pixel)
{
    const i32 a = pixel + ALPHA;
    u32 of_result = bits_of(was[a]);
    if (is_filtered(ALPHA)) {
        of_result = raised_level(__fadd_rn(sums[a], 0.5f), planes.most);
    }
    const float divisor = NORMALISE ? sums[a] : __fadd_rn(__int_as_float((i32)of_result), -RAISED);
#pragma unroll
    for (i32 c = 0; c < CHANNELS; ++c) {
        const i32 v = pixel + c;
        if (c == ALPHA) {
            made[v] = of_result;
        } else if (is_filtered(c)) {
            const float divided = __fdiv_rn(__fmul_rn(sums[v], planes.gain), divisor);
            const float bias = channel_of(plane, c).bias;
            made[v] = divisor == 0.0f ? bits_of(was[v])
                                      : raised_level(__fadd_rn(divided, bias), planes.most);
        }
        if (THRESHOLD && is_filtered(c)) {
            made[v] = bits_of(thresholded(__int_as_float((i32)made[v]), was[v], planes.threshold));
        }
        if (!is_filtered(c)) {
            const i32 fill = channel_of(plane, c).fill;
            made[v] = fill < 0 ? bits_of(was[v]) : RAISED_BITS | (u32)fill;
        }
    }
}

// Divides four sums of a row and writes their levels, as many as lie in the plane.
__device__ __forceinline__ void store_quad(const FloatPlanes &planes, const FloatPlane &plane, i32 sample,
                                           i32 y, const float (&sums)[4])
{
    const i32 rest = plane.width * CHANNELS - sample;
    u32 original[QUAD_WORDS];
    load_original(original, planes, plane, sample, y, rest);
    float was[4];
    u32 made[4] = {};
#pragma unroll
    for (i32 v = 0; v < 4; ++v) {
        was[v] = raised(original, v);
    }
#pragma unroll
    for (i32 pixel = 0; pixel < 4; pixel += CHANNELS) {
        divide(made, planes, plane, sums, was, pixel);
    }
    u32 words[QUAD_WORDS];
    if constexpr (SAMPLE_BYTES == 1) {
        const u32 first = __byte_perm(made[0], made[1], 0x0040), last = __byte_perm(made[2], made[3], 0x0040);
        words[0] = __byte_perm(first, last, 0x5410);
    } else {
#pragma unroll
        for (i32 k = 0; k < QUAD_WORDS; ++k) {
            words[k] = __byte_perm(made[2 * k] << SAMPLE_SHIFT, made[2 * k + 1] << SAMPLE_SHIFT, 0x5410);
        }
    }
    Sample *to = (Sample *)(plane.result + (i64)y * plane.result_pitch) + sample;
    if (planes.aligned && rest >= 4) {
#if SAMPLE_BYTES == 1
        *(u32 *)to = words[0];
#else
        *(uint2 *)to = make_uint2(words[0], words[1]);
#endif
        return;
    }
#pragma unroll
    for (i32 k = 0; k < QUAD_WORDS; ++k) {
#pragma unroll 1
        for (i32 i = 0; i < 4 / SAMPLE_BYTES; ++i) {
            const i32 v = 4 / SAMPLE_BYTES * k + i;
            if (v < rest) {
                to[v] = (Sample)(words[k] >> 8 * SAMPLE_BYTES * i);
            }
        }
    }
}
#elif LEVELS
// Writes four sums of a row, as many as lie in the plane. Rows of sums are aligned.
__device__ __forceinline__ void store_quad(const FloatPlanes &, const FloatPlane &plane, i32 sample, i32 y,
                                           const float (&sums)[4])
{
    const i32 rest = plane.width * CHANNELS - sample;
    float *to = (float *)(plane.result + (i64)y * plane.result_pitch) + sample;
    if (rest >= 4) {
        *(uint4 *)to = make_uint4(bits_of(sums[0]), bits_of(sums[1]), bits_of(sums[2]), bits_of(sums[3]));
        return;
    }
#pragma unroll
    for (i32 v = 0; v < 4; ++v) {
        if (v < rest) {
            to[v] = sums[v];
        }
    }
}
#else
// Writes four results of a row, as many as lie in the plane.
__device__ __forceinline__ void store_quad(const FloatPlanes &planes, const FloatPlane &plane, i32 sample,
                                           i32 y, const float (&values)[4])
{
    constexpr bool NEEDS_ORIGINAL = THRESHOLD || !every_channel;
    const i32 rest = plane.width * CHANNELS - sample;
    Sample *to = (Sample *)(plane.result + (i64)y * plane.result_pitch) + sample;
    const Sample *original = (const Sample *)(plane.original + (i64)y * plane.original_pitch) + sample;
    Sample made[4] = {};
#pragma unroll
    for (i32 v = 0; v < 4; ++v) {
        Sample before = 0;
        if (NEEDS_ORIGINAL && v < rest) {
            before = original[v];
        }
        store_result(made[v], values[v], before, is_convolved((sample + v) % CHANNELS), planes.threshold);
    }
    if (planes.aligned && rest >= 4) {
#if SAMPLE_BYTES == 2
        *(uint2 *)to = make_uint2(made[0] | (u32)made[1] << 16, made[2] | (u32)made[3] << 16);
#else
        *(uint4 *)to = make_uint4(bits_of(made[0]), bits_of(made[1]), bits_of(made[2]), bits_of(made[3]));
#endif
        return;
    }
#pragma unroll
    for (i32 v = 0; v < 4; ++v) {
        if (v < rest) {
            to[v] = made[v];
        }
    }
}
#endif
