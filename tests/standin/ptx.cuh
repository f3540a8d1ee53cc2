// The functions of kernels/common/platform/ptx.cuh by way of the stand-in's driver, whose NVRTC gives kernel
// texts this file.
#pragma once

#include "common/platform/types.cuh"

namespace standin {
inline void multiply(int bits, i32 (&d)[4], const u32 (&a)[4], const u32 (&b)[2], const i32 (&c)[4])
{
    Lane *me = state.now;
    Exchange &mine = me->exchange;
    mine.kind = MULTIPLY | bits | STANDIN_WRAPS;
    for (int k = 0; k < 4; ++k) mine.a[k] = a[k];
    for (int k = 0; k < 2; ++k) mine.b[k] = b[k];
    for (int k = 0; k < 4; ++k) mine.c[k] = c[k];
    state.services->meet_warp(me);
    for (int k = 0; k < 4; ++k) d[k] = mine.d[k];
}
}  // namespace standin

#define MULTIPLY(NAME, SIGNS) \
    inline void NAME(i32(&d)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1, const i32(&c)[4]) \
    { \
        standin::multiply((SIGNS) | standin::DEEP, d, {a0, a1, a2, a3}, {b0, b1}, c); \
    } \
    inline void NAME##_16(i32(&d)[4], u32 a0, u32 a1, u32 b0, const i32(&c)[4]) \
    { \
        standin::multiply(SIGNS, d, {a0, a1, 0, 0}, {b0, 0}, c); \
    }
MULTIPLY(multiply_pixels_weights, standin::SIGNED_B)
MULTIPLY(multiply_weights_pixels, standin::SIGNED_A)
MULTIPLY(multiply_weights_signed, standin::SIGNED_A | standin::SIGNED_B)
#undef MULTIPLY

inline u32 shared_address(const void *p)
{
    const unsigned long long offset = (const u8 *)p - standin::state.shared;
    if (offset >= standin::state.shared_bytes)
        standin::fail("an address outside of dynamic shared memory was taken for a copy");
    return (u32)offset;
}

constexpr bool COPIES_ASYNCHRONOUSLY = true;

inline void copy(u32 to, const u8 *from, i32 bytes)
{
    standin::state.services->copy(standin::state.now, to, from, bytes);
}

inline void copy(u32 to, const u8 *from)
{
    copy(to, from, 16);
}

inline void end_of_copies()
{
    standin::state.services->end_of_copies(standin::state.now);
}

inline void wait_for_copies()
{
    standin::state.services->wait_for_copies(standin::state.now, 1);
}

struct TensorMap {
    unsigned long long words[16];
};

struct Arrivals {
    unsigned long long state;
};

inline void begin_arrivals(Arrivals &arrivals)
{
    standin::state.services->begin_arrivals(standin::state.now, &arrivals.state);
}

inline void expect_bytes(Arrivals &arrivals, u32 bytes)
{
    standin::state.services->expect_bytes(standin::state.now, &arrivals.state, bytes);
}

inline void copy_tile(u32 to, const TensorMap &map, i32 x, i32 y, Arrivals &arrivals)
{
    standin::state.services->copy_tile(standin::state.now, to, map.words, x, y, &arrivals.state);
}

inline void wait_for_bytes(Arrivals &arrivals, i32 odd)
{
    standin::state.services->wait_for_bytes(standin::state.now, &arrivals.state, odd);
}

inline void prefetch(const u8 *) {}
inline void prefetch_tile(const TensorMap &, i32, i32) {}

// Copies are made where they are waited for, so that all writes before that are there.
inline void end_of_writes() {}

inline void let_next_launch_begin() {}

inline void wait_for_earlier_launches()
{
    standin::state.services->wait_for_earlier_launches(standin::state.now);
}

// As far from 1 / x as a card's may be, on either side by turns.
// Further from the root of x than a card's is, on either side by turns.
inline float approximate_root(float x)
{
    const float root = __builtin_sqrtf(x);
    return root * (__float_as_int(x) & 1 ? 1 - 0x1p-23f : 1 + 0x1p-23f);
}

inline u32 larger_halves(u32 a, u32 b)
{
    const u32 low = (a & 0xffff) > (b & 0xffff) ? a : b, high = a >> 16 > b >> 16 ? a : b;
    return (high & 0xffff0000) | (low & 0xffff);
}

inline u32 smaller_halves(u32 a, u32 b)
{
    return a ^ b ^ larger_halves(a, b);
}

inline u32 pack_4(i32 a, i32 b, i32 c, i32 d)
{
    const i32 values[4] = {a, b, c, d};
    u32 packed = 0;
    for (int k = 0; k < 4; ++k)
        packed |= (u32)(values[k] < 0 ? 0 : values[k] > 255 ? 255 : values[k]) << 8 * k;
    return packed;
}

inline float widened(u16 half)
{
    const u32 sign = (u32)(half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 0x3ff;
    if (exponent == 31) return __int_as_float((int)(sign | 0x7f800000 | fraction << 13));
    const float size = exponent == 0 ? (float)fraction * 0x1p-24f
                                     : __int_as_float((int)((exponent + 112) << 23 | fraction << 13));
    return sign ? -size : size;
}

inline u16 narrowed(float x)
{
    const u32 bits = (u32)__float_as_int(x), size = bits & 0x7fffffff, sign = bits >> 16 & 0x8000;
    // As a card answers what is no number.
    if (size > 0x7f800000) return 0x7fff;
    // From 65520 on.
    if (size >= 0x477ff000) return (u16)(sign | 0x7c00);
    // Below 2^-14 numbers are 2^-24 apart, as they are above 0.5 in 32 bits.
    if (size < 0x38800000)
        return (u16)(sign | ((u32)__float_as_int(__int_as_float((int)size) + 0.5f) - 0x3f000000));
    return (u16)(sign | (size + 0xfff + (size >> 13 & 1) - 0x38000000) >> 13);
}
