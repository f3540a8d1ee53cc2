// Colour under alpha: multiplied before the convolution, divided after it. One thread a pixel, all its components.
//
// Compile-time parameters: SAMPLE_BYTES, SAMPLE_SHIFT, MAX_VALUE.

typedef unsigned char u8;
typedef unsigned short u16;
typedef int i32;
typedef long long i64;

#if SAMPLE_BYTES == 1
typedef u8 Sample;
#else
typedef u16 Sample;
#endif

// One component of the picture before the step, and of the picture that is made. The same structs are in launch.rs.
struct Component {
    const u8 *before;
    u8 *after;
    i64 before_pitch;  // bytes
    i64 after_pitch;
    i32 step;       // samples from one pixel to the next
    i32 level;      // the value that stands for no signal
    i32 convolved;  // 1: multiplied and divided, 0: left alone
    i32 unused;
};

struct Picture {
    Component at[4];
    i32 count;
    i32 alpha;  // which of them is alpha
    i32 width;
    i32 height;
    i64 gain;  // times 2^16
    i32 offset;
    i32 normalise;
    i32 filter_alpha;
    i32 unused;
};

__device__ __forceinline__ i64 floor_div(i64 n, i64 d)
{
    const i64 q = n / d;
    return n % d < 0 ? q - 1 : q;
}

__device__ __forceinline__ i32 before(const Component &component, i32 x, i32 y)
{
    const Sample *row = (const Sample *)(component.before + (i64)y * component.before_pitch);
    return (i32)row[(i64)x * component.step] >> SAMPLE_SHIFT;
}

__device__ __forceinline__ Sample *after(const Component &component, i32 x, i32 y)
{
    return (Sample *)(component.after + (i64)y * component.after_pitch) + (i64)x * component.step;
}

extern "C" __global__ void __launch_bounds__(256) premultiply(const Picture picture)
{
    const i32 x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= picture.width) {
        return;
    }
    for (i64 y = blockIdx.y; y < picture.height; y += gridDim.y) {
        const i32 a = before(picture.at[picture.alpha], x, (i32)y);
        for (i32 k = 0; k < picture.count; ++k) {
            const Component &component = picture.at[k];
            i32 value = before(component, x, (i32)y);
            if (component.convolved) {
                const i64 weighted = 2 * (i64)(value - component.level) * a + MAX_VALUE;
                value = component.level + (i32)floor_div(weighted, 2 * (i64)MAX_VALUE);
            }
            *after(component, x, (i32)y) = (Sample)(value << SAMPLE_SHIFT);
        }
    }
}

// Works in place on the convolved picture: a pixel's alpha and colours are read and written by the same thread.
extern "C" __global__ void __launch_bounds__(256) unpremultiply(const Picture picture)
{
    const i32 x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x >= picture.width) {
        return;
    }
    for (i64 y = blockIdx.y; y < picture.height; y += gridDim.y) {
        const Component &alpha = picture.at[picture.alpha];
        const i32 convolved = *after(alpha, x, (i32)y) >> SAMPLE_SHIFT;
        const i32 of_result = picture.filter_alpha ? convolved : before(alpha, x, (i32)y);
        const i64 a = picture.normalise ? convolved : of_result;
        for (i32 k = 0; k < picture.count; ++k) {
            const Component &component = picture.at[k];
            Sample *out = after(component, x, (i32)y);
            i64 value = of_result;
            if (k != picture.alpha) {
                if (!component.convolved) {
                    continue;
                }
                if (a == 0) {
                    value = before(component, x, (i32)y);
                } else {
                    const i64 above = (i64)(*out >> SAMPLE_SHIFT) - component.level;
                    const i64 scaled = 2 * above * MAX_VALUE * picture.gain + a * 65536;
                    value = component.level + floor_div(scaled, a * 131072) + picture.offset;
                    value = value < 0 ? 0 : value > MAX_VALUE ? MAX_VALUE : value;
                }
            }
            *out = (Sample)((i32)value << SAMPLE_SHIFT);
        }
    }
}
