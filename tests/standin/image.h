// A compiled kernel text: what the stand-in's NVRTC makes and its driver loads. Behind this head lies a
// shared library.
#pragma once

#include <cstdint>

namespace standin {

constexpr char MAGIC[8] = {'s', 't', 'a', 'n', 'd', '-', 'i', 'n'};

struct ImageHead {
    char magic[8];
    std::uint32_t architecture;  // 90 for compute capability 9.0
    std::uint32_t is_portable;   // 1: for newer cards too, as PTX is
    std::uint64_t bytes;         // of the library
};

}  // namespace standin
