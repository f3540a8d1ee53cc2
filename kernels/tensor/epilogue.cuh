// The epilogue: divides sums, clamps them to the range of samples, packs and stores them.
#pragma once

#include "tensor/tile/operand.cuh"

// The bias, if sums did not start with it (wide sums, or components with different biases); else 0.
__device__ __forceinline__ Total missing_bias(const Plane &plane, i32 sample)
{
    if (WIDE || !SAME_BIAS) {
        return (Total)(SAME_BIAS ? shared_bias(plane) : plane.channel[sample % CHANNELS].low);
    }
    return 0;
}

// Divides a sum that has its bias, and clamps it to the range of samples. 32-bit sums of 8-bit samples are
// clamped when they are packed.
__device__ __forceinline__ i32 requantize(const Planes &planes, Total total)
{
    if constexpr (DIVIDES) {
        // All negative sums become 0.
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

// Adds the missing bias to a sum, then requantizes it.
__device__ __forceinline__ i32 finish(const Planes &planes, const Plane &plane, Total total, i32 sample)
{
    return requantize(planes, total + missing_bias(plane, sample));
}

// Packs neighbouring results into words as they lie in memory.
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

// Lanes of a warp hold parts of a run of results that are neighbours in memory; `before` is the lane with the
// part before this lane's.
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

    // `end` is the byte of a row at which results end, if that is before the row's end.
    __device__ __forceinline__ Output(const Plane &plane, const Run &run, i32 x, i32 y, i32 end = 0x7fffffff)
        : plane(plane), run(run), x(x), y(y), left(min(plane.width * PIXEL_BYTES, end) - x),
          rows(!ALIGNED || left > 0 ? plane.height - y : 0),
          out(plane.result + (i64)y * plane.result_pitch + x)
    {
    }

    // Writes the next row, and goes `step` rows down.
    __device__ __forceinline__ void store(u32 (&words)[N], i32 step)
    {
        const bool inside = row < rows;
        if (row == 0) {
            // Waits only now, so that launches of small frames overlap. Earlier launches may have read or
            // written until here what the results overwrite.
            wait_for_earlier_launches();
        }
        if (!every_channel && inside) {
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
                store_unaligned(words, earlier);
            }
        }
        out += plane.result_pitch * step;
        row += step;
    }

    // Whole words of memory, of which the first completes the part before; the ends of the run are written
    // byte by byte.
    __device__ __forceinline__ void store_unaligned(const u32 (&words)[N], u32 earlier)
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
