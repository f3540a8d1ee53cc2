// A mask's weights, in constant memory or in global memory (CONSTANT_WEIGHTS).
//
// WEIGHTS(Type, symbol, count) declares a type that is made of the pointer of global memory and indexed like
// an array; `add` adds to a sum what a value counts under weight k. Constant weights, the array `symbol`,
// belong to one module alone: each step of a chain has a module of its own, so that no step can overwrite
// another's.
#pragma once
#include "common/plane.cuh"

#if CONSTANT_WEIGHTS
#define WEIGHTS(Type, symbol, count) \
    __constant__ i32 symbol[count]; \
    WEIGHTS_TYPE(Type, symbol[k])
#else
#define WEIGHTS(Type, symbol, count) WEIGHTS_TYPE(Type, __ldg(global + k))
#endif

#define WEIGHTS_TYPE(Type, weight) \
    struct Type { \
        const i32 *global; \
        __device__ __forceinline__ i32 operator[](i32 k) const { return weight; } \
        typedef Sum Total; \
        __device__ __forceinline__ void add(Sum &sum, i32 k, i32 value) const \
        { \
            sum += (Sum)(*this)[k] * value; \
        } \
    }
