// The epilogue: sums are divided, clamped to the range of samples, packed, divided by alpha and stored.
#pragma once

#include "common/premultiply.cuh"
#include "tensor/tile/operand.cuh"

// The original alpha of N neighbouring pixels: words that hold it, and which of their bytes it is.
template <i32 N> struct Alphas {
    static constexpr bool BESIDE = DEINTERLEAVE || DEINTERLEAVE4;  // four pixels' in a word
    u32 words[BESIDE ? (N + 3) / 4 : N];

    __device__ __forceinline__ u32 word(i32 k) const { return words[BESIDE ? k / 4 : k]; }
    static constexpr __device__ i32 byte(i32 k) { return BESIDE ? k % 4 : ALPHA_BYTE; }
};

// Those of the pixels from byte `x` of a tile's row `y` on: out of the tile, whose colours are premultiplied,
// or out of its components.
template <bool ALIGNED, i32 N>
__device__ __forceinline__ void read_alphas(Alphas<N> &alphas, const u8 *stage, i32 x, i32 y)
{
    const u8 *p = stage + (y + MASK_H / 2) * row_pitch<ALIGNED>;
    if constexpr (DEINTERLEAVE) {
        constexpr i32 FIRST = (LEFT - START) / CHANNELS, REMAINDER = FIRST % 4;
        p += ALPHA_BYTE * PART + FIRST - REMAINDER + x / CHANNELS;
#pragma unroll
        for (i32 k = 0; k < N / 4; ++k) {
            alphas.words[k] = word(p + 4 * k);
            if (REMAINDER != 0) {
                alphas.words[k] = __funnelshift_r(alphas.words[k], word(p + 4 * k + 4), 8 * REMAINDER);
            }
        }
    } else if constexpr (DEINTERLEAVE4) {
        static_assert(N == 4 || !DEINTERLEAVE4, "a lane has four pixels");
        u32 parts[4];
        read_four_words<ALIGNED>(parts, p, LEFT + x);
        alphas.words[0] = parts[ALPHA_BYTE];
    } else if constexpr (ALIGNED) {
#pragma unroll
        for (i32 k = 0; k < N; ++k) {
            alphas.words[k] = word(p + LEFT + x + 4 * k);
        }
    } else {
        p += misalignment_of(p) + LEFT + x + ALPHA_BYTE;
#pragma unroll
        for (i32 k = 0; k < N; ++k) {
            alphas.words[k] = (u32)p[4 * k] << 8 * ALPHA_BYTE;
        }
    }
}

// What a sum lacks of the bias that it should begin with.
__device__ __forceinline__ Total late_start(const Plane &plane, i32 sample)
{
    if (WIDE || !SAME_BIAS) {
        return (Total)(SAME_BIAS ? shared_bias(plane) : plane.channel[sample % CHANNELS].low);
    }
    return 0;
}

// A sum with its bias divided, and cut to the range of samples. Sums of 8-bit samples that fit 32 bits are
// cut when they are packed.
__device__ __forceinline__ i32 requantize(const Planes &planes, Total total)
{
    if constexpr (DIVIDES) {
        // What is negative ends as 0 whatever it is.
        total = quotient(total < 0 ? 0 : (i32)total, planes.factor, planes.shift);
    } else {
        total >>= planes.shift;
    }
    if (SAMPLE_BYTES == 1 && !WIDE) {
        return (i32)total;
    }
    total = total < 0 ? 0 : total;
    total = total > planes.max_value ? planes.max_value : total;
    return (i32)total << SAMPLE_SHIFT;
}

// The same of a sum without what `late_start` says.
__device__ __forceinline__ i32 finish(const Planes &planes, const Plane &plane, Total total, i32 sample)
{
    return requantize(planes, total + late_start(plane, sample));
}

// Neighbouring results as they lie in memory.
template <i32 N>
__device__ __forceinline__ void pack(u32 (&words)[N], const i32 (&values)[4 * N / SAMPLE_BYTES])
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
template <i32 N>
__device__ __forceinline__ void keep_others(const Plane &plane, i32 x, i32 y, u32 (&words)[N])
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
constexpr bool whole_results =
    every_channel || (PREMULTIPLIED && (CONVOLVED | 1 << ALPHA_BYTE) == (1 << CHANNELS) - 1);

// The lanes of a warp hold parts of a run of results that lie beside each other in memory; `before` is the
// lane with the part before this one.
struct Run {
    i32 before;
    bool first;
    bool last;
};

// A lane's results: parts of 4 N bytes, the first at byte x of row y, others in rows below it. All lanes of a
// warp call its functions together.
template <bool ALIGNED, i32 N> struct Output {
    const Plane &plane;
    const Run run;
    const i32 x, y;
    const i32 left;  // bytes from there to where the row's results end
    const i32 rows;  // rows from there to the plane's end
    u8 *out;         // in the row that is written next
    i32 row = 0;
    // A bit for each pixel that is not restored yet, the last one's the lowest: set if it has no alpha.
    u32 transparent = 0;

    // `end` is the byte of the rows at which results end, if they do not go on to the rows' own end.
    __device__ __forceinline__ Output(const Plane &plane, const Run &run, i32 x, i32 y, i32 end = 0x7fffffff)
        : plane(plane), run(run), x(x), y(y), left(min(plane.width * PIXEL_BYTES, end) - x),
          rows(!ALIGNED || left > 0 ? plane.height - y : 0),
          out(plane.result + (i64)y * plane.result_pitch + x)
    {
    }

    // Divides colours that were multiplied by alpha by it, and writes the pixels as number `index` of COUNT
    // rows: component(k, c, more) is `more` and what the mask made of component c of pixel k, `alphas` are
    // the pixels' before the step.
    template <i32 COUNT, class Component>
    __device__ __forceinline__ void put_unpremultiplied(i32 index, const Component &component,
                                                        const Alphas<N> &alphas, i32 step)
    {
        constexpr i32 AT_ONCE = 32 / N;
        u32 words[N];
#pragma unroll
        for (i32 k = 0; k < N; ++k) {
            // A sum begins with `more`.
            const auto convolved = [&](u32 more) { return component(k, ALPHA_BYTE, more); };
            const auto weight = [&](u32 more) {
                return NORMALISE || FILTER_ALPHA ? convolved(more)
                                                 : byte_of(alphas.word(k), alphas.byte(k), more);
            };
            const u32 colours[4] = {component(k, 0, 0), component(k, 1, 0), component(k, 2, 0),
                                    component(k, 3, 0)};
            words[k] =
                unpremultiplied(colours, weight(FLOAT_BITS), FILTER_ALPHA ? convolved(0) : alphas.word(k),
                                FILTER_ALPHA ? 0 : alphas.byte(k));
            // Shifts in a set bit where 1 less than nothing is below 0.
            transparent = __funnelshift_l(weight(~0u), transparent, 1);
        }
        put(words, step);
        if (index % AT_ONCE == AT_ONCE - 1 || index == COUNT - 1) {
            restore(index % AT_ONCE + 1, step);
        }
    }

    // Restores, in the last `count` rows, the colours of pixels without alpha to divide by. That comes after
    // all rows, so that no lane waits for it where there are none.
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
            auto is_restored = [&](i32 k) {
                return (transparent >> (N - 1 - k) & 1) && r < rows && 4 * k < left;
            };
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
            // Waits only here, so that launches of small frames run side by side. Until now launches before
            // this one may still read or write where the results go.
            wait_for_earlier_launches();
        }
        if (!whole_results && inside) {
            keep_others(plane, x, y + row, words);
        }
        if (ALIGNED) {
            // The padding of a row up to a multiple of 16 bytes may be overwritten.
            constexpr i32 AT_ONCE = N % 4 == 0 ? 4 : 2;
#pragma unroll
            for (i32 k = 0; k < N; k += AT_ONCE) {
                if (inside && (k == 0 || 4 * k < left)) {
                    if constexpr (AT_ONCE == 4) {
                        *(uint4 *)(out + 4 * k) =
                            make_uint4(words[k], words[k + 1], words[k + 2], words[k + 3]);
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

    // Whole words of memory, of which the first completes the part before; the ends of the run are written
    // byte by byte.
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
