// Weights of 32 bits, in constant memory or in global memory (CONSTANT_WEIGHTS).
//
// FLOAT_WEIGHTS(Type, symbol, count) declares a type that is made of the pointer of global memory and indexed
// like an array. Constant weights, the array `symbol`, belong to one module alone: each step of a chain has a
// module of its own.
#pragma once

#if CONSTANT_WEIGHTS
#define FLOAT_WEIGHTS(Type, symbol, count) \
    __constant__ float symbol[count]; \
    FLOAT_WEIGHTS_TYPE(Type, symbol[k])
#else
#define FLOAT_WEIGHTS(Type, symbol, count) FLOAT_WEIGHTS_TYPE(Type, __ldg(global + k))
#endif

#define FLOAT_WEIGHTS_TYPE(Type, weight) \
    struct Type { \
        const float *global; \
        __device__ __forceinline__ float operator[](i32 k) const { return weight; } \
    }
