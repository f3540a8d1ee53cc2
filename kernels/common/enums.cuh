// The values of compile-time parameters that are no quantities, each with its name. The same numbers are in
// src/engine/cuda/kernels/plane_group.rs and variant.rs; tests there compare them.
#pragma once

// COMBINING: the number that is made of sums.
enum Combining {
    ABSOLUTE = 0,   // the magnitude of the only sum
    LARGEST = 1,    // the largest of several sums
    MAGNITUDE = 2,  // the root of the sum of two squares
    LINEAR = 3,     // the sum itself
};

// PIXELS: where a thread reads pixels. Macros, since the preprocessor compares them.
#define GLOBAL_PIXELS 0   // global memory
#define TILE_PIXELS 1     // a tile in shared memory
#define TEXTURE_PIXELS 2  // a texture object
