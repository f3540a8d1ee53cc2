// A mask's weights, in constant memory or in global memory (CONSTANT_WEIGHTS).
//
// WEIGHTS(Type, Number, symbol, count) declares a type of weights that is constructed from a pointer to
// global memory and indexed like an array. Constant weights lie in the array `symbol`. It belongs to one
// module, and each step of a chain has a module of its own, so that no step can overwrite another's weights.
#pragma once

#include "common/platform/types.cuh"

#if CONSTANT_WEIGHTS
#define WEIGHTS(Type, Number, symbol, count) \
    __constant__ Number symbol[count]; \
    WEIGHTS_TYPE(Type, Number, symbol[k])
#else
#define WEIGHTS(Type, Number, symbol, count) WEIGHTS_TYPE(Type, Number, __ldg(global + k))
#endif

#define WEIGHTS_TYPE(Type, Number, weight) \
    struct Type { \
        const Number *global; \
        __device__ __forceinline__ Number operator[](i32 k) const { return weight; } \
    }
