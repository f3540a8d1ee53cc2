// Blocks of threads on one thread of the host: each thread of a block is a fiber, and fibers take turns where
// the kernel makes them meet.
#pragma once

#include "lane.h"
#include "memory.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace standin {

struct Grid {
    Index blocks, threads;
    unsigned shared_bytes;
    const Past *before;  // the launches that this one may begin before the end of; null if it does not
};

// Runs all blocks of a launch, in an order that `seed` chooses. Returns why it broke down; empty if it did
// not. `code` is then the driver's error.
std::string run_grid(const Description &module, const Kernel &kernel, const Grid &grid,
                     void *const *parameters, std::uint64_t seed, int &code);

// A sequence of numbers without pattern.
struct Random {
    std::uint64_t state;

    std::uint64_t next()
    {
        state += 0x9e3779b97f4a7c15;
        std::uint64_t z = state;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        return z ^ z >> 31;
    }

    std::uint64_t below(std::uint64_t n) { return next() % n; }
};

}  // namespace standin
