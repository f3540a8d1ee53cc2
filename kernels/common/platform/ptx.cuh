// PTX instructions that CUDA C++ cannot express. Only this file contains PTX, so that an emulator of a card
// replaces this file alone.
#pragma once

#include "common/platform/types.cuh"

// Multiplies 16 rows of 32 bytes with 8 columns of 32 bytes and adds the products to d. With g = lane / 4 and
// t = lane % 4: a[0] and a[2] are bytes 4t to 4t + 3 and 16 + 4t to 19 + 4t of row g, a[1] and a[3] those of
// row g + 8; b0 and b1 the same of column g; d[0], d[1] are row g, columns 2t and 2t + 1, and d[2], d[3] row
// g + 8.
#define MULTIPLY(NAME, A, B) \
    __device__ __forceinline__ void NAME(i32(&d)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1, \
                                         const i32(&c)[4]) \
    { \
        asm("mma.sync.aligned.m16n8k32.row.col.s32." A "." B \
            ".s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%10,%11,%12,%13};" \
            : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) \
            : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1), "r"(c[0]), "r"(c[1]), "r"(c[2]), \
              "r"(c[3])); \
    } \
    /* The same with 16 bytes. */ \
    __device__ __forceinline__ void NAME##_16(i32(&d)[4], u32 a0, u32 a1, u32 b0, const i32(&c)[4]) \
    { \
        asm("mma.sync.aligned.m16n8k16.row.col.s32." A "." B \
            ".s32 {%0,%1,%2,%3},{%4,%5},{%6},{%7,%8,%9,%10};" \
            : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) \
            : "r"(a0), "r"(a1), "r"(b0), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3])); \
    }
MULTIPLY(multiply_pixels_weights, "u8", "s8")
MULTIPLY(multiply_weights_pixels, "s8", "u8")
MULTIPLY(multiply_weights_signed, "s8", "s8")
#undef MULTIPLY

__device__ __forceinline__ u32 shared_address(const void *p)
{
    return (u32)__cvta_generic_to_shared(p);
}

// True if the card has cp.async, the copies below.
constexpr bool COPIES_ASYNCHRONOUSLY =
#if __CUDA_ARCH__ >= 800
    true;
#else
    false;
#endif

// Copies 16 bytes to shared memory while the thread goes on.
__device__ __forceinline__ void copy(u32 to, const u8 *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

// Copies the first `bytes` of 16; the others become zero.
__device__ __forceinline__ void copy(u32 to, const u8 *from, i32 bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

// Prefetches at least the 128 bytes that hold `from` to the level-2 cache. A launch may do that before
// earlier launches have ended.
__device__ __forceinline__ void prefetch(const u8 *from)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("prefetch.global.L2 [%0];" ::"l"(from) : "memory");
#endif
}

__device__ __forceinline__ void end_of_copies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits for all groups of copies but the last. `end_of_copies` ends a group.
__device__ __forceinline__ void wait_for_copies()
{
    asm volatile("cp.async.wait_group 1;" ::: "memory");
}

// A tensor map: the driver's description of a plane's rows in memory, for TMA.
struct __align__(64) TensorMap {
    unsigned long long words[16];
};

// An mbarrier that counts the bytes of tiles that arrive in shared memory. Each `expect_bytes` begins a
// phase.
struct Arrivals {
    unsigned long long state;
};

#if __CUDA_ARCH__ >= 900
// One thread calls this before any other touches the arrivals.
__device__ __forceinline__ void begin_arrivals(Arrivals &arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n fence.mbarrier_init.release.cluster;"
                 ::"r"(shared_address(&arrivals))
                 : "memory");
}

// Begins a phase, which ends when `bytes` bytes have arrived.
__device__ __forceinline__ void expect_bytes(Arrivals &arrivals, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 ::"r"(shared_address(&arrivals)), "r"(bytes)
                 : "memory");
}

// One thread copies the map's tile whose first byte is 8 * x bytes after its row's start, in row y. Bytes
// outside the plane become zero.
__device__ __forceinline__ void copy_tile(u32 to, const TensorMap &map, i32 x, i32 y, Arrivals &arrivals)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];"
                 ::"r"(to), "l"(&map), "r"(x), "r"(y), "r"(shared_address(&arrivals))
                 : "memory");
}

// Prefetches the same tile to the level-2 cache.
__device__ __forceinline__ void prefetch_tile(const TensorMap &map, i32 x, i32 y)
{
    asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %2}];"
                 ::"l"(&map), "r"(x), "r"(y)
                 : "memory");
}

// Waits until all bytes of a phase have arrived. `odd` is the phase's parity: 0 for the first, 1 for the
// second, and so on.
__device__ __forceinline__ void wait_for_bytes(Arrivals &arrivals, i32 odd)
{
    asm volatile("{.reg .pred done;\n"
                 "again%=: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again%=;}" ::"r"(shared_address(&arrivals)),
                 "r"(odd)
                 : "memory");
}

// Orders this thread's writes to shared memory before tiles that TMA copies there later.
__device__ __forceinline__ void end_of_writes()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
#endif

// Lets the next launch begin as soon as blocks of this one leave room. Until its `wait_for_earlier_launches`
// returns, that launch must not write to memory, nor read what is still being written: by this launch, or by
// an earlier one that this launch has not waited for.
__device__ __forceinline__ void let_next_launch_begin()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Waits until all earlier launches have ended and their writes are visible.
__device__ __forceinline__ void wait_for_earlier_launches()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// The root of x, off by less than 2^-22 of it.
__device__ __forceinline__ float approximate_root(float x)
{
    float r;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

// The larger of each unsigned 16-bit half.
__device__ __forceinline__ u32 larger_halves(u32 a, u32 b)
{
    u32 r;
#if __CUDA_ARCH__ >= 900
    asm("max.u16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
#else
    asm("vmax2.u32.u32.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(0));
#endif
    return r;
}

// The smaller of both halves, without sign.
__device__ __forceinline__ u32 smaller_halves(u32 a, u32 b)
{
    u32 r;
#if __CUDA_ARCH__ >= 900
    asm("min.u16x2 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
#else
    asm("vmin2.u32.u32.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(0));
#endif
    return r;
}

// Four numbers clamped to bytes, the first one lowest.
__device__ __forceinline__ u32 pack_4(i32 a, i32 b, i32 c, i32 d)
{
    u32 r;
    asm("{.reg .b32 t;\n cvt.pack.sat.u8.s32.b32 t, %4, %3, 0;\n cvt.pack.sat.u8.s32.b32 %0, %2, %1, t;}"
        : "=r"(r)
        : "r"(a), "r"(b), "r"(c), "r"(d));
    return r;
}

// A half-precision number as a float, exactly.
__device__ __forceinline__ float widened(u16 half)
{
    float r;
    asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(half));
    return r;
}

// A float rounded to half precision, to nearest even. A NaN gives some NaN.
__device__ __forceinline__ u16 narrowed(float x)
{
    u16 r;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(x));
    return r;
}
