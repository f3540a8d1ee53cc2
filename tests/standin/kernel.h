// CUDA's C++ as far as kernel texts use it, for a compiler that knows nothing of CUDA. The stand-in's NVRTC
// puts this before each text.
#pragma once

#include "lane.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __constant__ __attribute__((visibility("default")))
#define __shared__ static __attribute__((section("standin_shared")))

namespace standin {
extern State state;

[[noreturn]] inline void fail(const char *why)
{
    state.services->fail(why);
    __builtin_unreachable();
}
}  // namespace standin

// One's own position. `now` changes as the threads of a block take turns.
#define threadIdx (standin::state.now->index)
#define blockIdx (standin::state.block)
#define blockDim (standin::state.block_size)
#define gridDim (standin::state.grid_size)

// The compiler checks addresses where functions are called with them, so copies are functions.
struct alignas(8) uint2 {
    unsigned x, y;

    uint2(unsigned x, unsigned y) : x(x), y(y) {}
    uint2(const uint2 &o) : x(o.x), y(o.y) {}
    uint2 &operator=(const uint2 &o)
    {
        x = o.x, y = o.y;
        return *this;
    }
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;

    uint4(unsigned x, unsigned y, unsigned z, unsigned w) : x(x), y(y), z(z), w(w) {}
    uint4(const uint4 &o) : x(o.x), y(o.y), z(o.z), w(o.w) {}
    uint4 &operator=(const uint4 &o)
    {
        x = o.x, y = o.y, z = o.z, w = o.w;
        return *this;
    }
};

inline uint2 make_uint2(unsigned x, unsigned y) { return uint2{x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return uint4{x, y, z, w}; }

inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }

template <class T> inline T __ldg(const T *p) { return *p; }

inline void __syncthreads() { standin::state.services->meet_block(standin::state.now); }

inline void __syncwarp(unsigned mask = ~0u)
{
    if (mask != ~0u) standin::fail("__syncwarp of a part of a warp is not known to the stand-in");
    standin::state.now->exchange.kind = standin::MEET;
    standin::state.services->meet_warp(standin::state.now);
}

namespace standin {
inline unsigned shuffle(Kind kind, unsigned mask, unsigned value, int lane)
{
    if (mask != ~0u) fail("a shuffle among a part of a warp is not known to the stand-in");
    Lane *me = state.now;
    me->exchange.kind = kind;
    me->exchange.a[0] = value;
    me->exchange.c[0] = lane;
    state.services->meet_warp(me);
    return (unsigned)me->exchange.d[0];
}
}  // namespace standin

inline unsigned __shfl_sync(unsigned mask, unsigned value, int lane)
{
    return standin::shuffle(standin::SHUFFLE, mask, value, lane);
}
inline unsigned __shfl_xor_sync(unsigned mask, unsigned value, int lane)
{
    return standin::shuffle(standin::SHUFFLE_XOR, mask, value, lane);
}

// Four of the eight bytes of y:x, each chosen by the low three bits of a digit of `which`; its fourth bit
// spreads the byte's sign.
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned which)
{
    const unsigned long long both = (unsigned long long)y << 32 | x;
    unsigned result = 0;
    for (int k = 0; k < 4; ++k) {
        const unsigned digit = which >> 4 * k & 15;
        unsigned byte = (unsigned)(both >> 8 * (digit & 7)) & 255;
        if (digit & 8) byte = byte & 128 ? 255 : 0;
        result |= byte << 8 * k;
    }
    return result;
}

inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift)
{
    return (unsigned)(((unsigned long long)high << 32 | low) >> (shift & 31));
}

inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift)
{
    return (unsigned)(((unsigned long long)high << 32 | low) << (shift & 31) >> 32);
}

inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fadd_rd(float a, float b)
{
    const double sum = (double)a + b;
    const float near = (float)sum;
    return near > sum ? __builtin_nextafterf(near, -__builtin_inff()) : near;
}
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float fminf(float a, float b) { return __builtin_fminf(a, b); }
inline float fmaxf(float a, float b) { return __builtin_fmaxf(a, b); }
inline float fabsf(float x) { return __builtin_fabsf(x); }
inline float fmaf(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }

inline int __dp4a(int a, int b, int c)
{
    unsigned sum = (unsigned)c;
    for (int k = 0; k < 4; ++k)
        sum += (unsigned)((int)(signed char)(a >> 8 * k) * (int)(signed char)(b >> 8 * k));
    return (int)sum;
}

template <class T> inline T tex2D(unsigned long long object, float x, float y)
{
    const standin::Texture *texture = (const standin::Texture *)object;
    if (!texture || !texture->live) standin::fail("a texture was read that is none, or none any more");
    if (sizeof(T) != texture->texel_bytes || ((T)-1 < (T)0) != (texture->is_signed != 0))
        standin::fail("a texture was read as another type");
    // Point sampling, coordinates clamped.
    const float across = __builtin_floorf(x), down = __builtin_floorf(y);
    const unsigned long long column = across < 0 ? 0 : (unsigned long long)across;
    const unsigned long long row = down < 0 ? 0 : (unsigned long long)down;
    const unsigned long long last_column = texture->width - 1, last_row = texture->height - 1;
    const unsigned char *begin = texture->rows + (row < last_row ? row : last_row) * texture->pitch;
    return ((const T *)begin)[column < last_column ? column : last_column];
}

namespace standin {

// Calls a kernel with parameters at separate addresses.
template <class... P> struct Caller;
template <> struct Caller<> {
    template <class F, class... Done> static void call(F f, void *const *, const Done &...done)
    {
        f(done...);
    }
};
template <class P, class... More> struct Caller<P, More...> {
    template <class F, class... Done> static void call(F f, void *const *p, const Done &...done)
    {
        Caller<More...>::call(f, p + 1, done..., *(const P *)*p);
    }
};

template <auto F> struct Entry;
template <class... P, void (*F)(P...)> struct Entry<F> {
    static void call(void *const *p) { Caller<P...>::call(F, p); }
    static constexpr Kernel describe(const char *name, int most_threads = 1024, int = 0)
    {
        return Kernel{name, call, (int)sizeof...(P), {(unsigned)sizeof(P)...}, most_threads};
    }
};

}  // namespace standin
