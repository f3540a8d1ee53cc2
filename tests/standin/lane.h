// What a compiled kernel text and the stand-in's driver know of each other.
#pragma once

namespace standin {

struct Index {
    unsigned x, y, z;
};

// What a lane brings to an instruction of its whole warp, and what it takes from there.
struct Exchange {
    int kind;           // which instruction; all lanes must agree
    unsigned a[4], b[2];
    int c[4], d[4];
};

// Instructions of a whole warp.
enum Kind { SHUFFLE, SHUFFLE_XOR, MEET, MULTIPLY = 16 };
// Bits that tell one MULTIPLY from another.
enum { SIGNED_A = 1, SIGNED_B = 2, DEEP = 4, WRAPS = 8 };

// One thread of a block, as the kernel sees it. The driver's own part follows behind.
struct Lane {
    Index index;
    Exchange exchange;
};

// A texture over rows in linear memory.
struct Texture {
    const unsigned char *rows;
    unsigned long long width, height, pitch;
    int texel_bytes;
    int is_signed;
    int live;
};

// What the stand-in writes into a map of tiles. It is counted in elements of 8 bytes.
struct TileMapWords {
    static constexpr unsigned long long IS_ONE = 0x70616d656c6974;
    unsigned long long is_one, rows_begin, width, height, pitch, tile_width, tile_height;
};

// What kernels ask of the driver.
struct Services {
    void (*meet_block)(Lane *);
    void (*meet_warp)(Lane *);
    void (*copy)(Lane *, unsigned to, const unsigned char *from, int bytes);
    void (*end_of_copies)(Lane *);
    void (*wait_for_copies)(Lane *, int but);
    void (*begin_arrivals)(Lane *, unsigned long long *arrivals);
    void (*expect_bytes)(Lane *, unsigned long long *arrivals, unsigned bytes);
    void (*copy_tile)(Lane *, unsigned to, const unsigned long long *map, int x, int y,
                      unsigned long long *arrivals);
    void (*wait_for_bytes)(Lane *, unsigned long long *arrivals, int odd);
    void (*wait_for_earlier_launches)(Lane *);
    void (*fail)(const char *why);
};

// A module's own state: what its kernels read as they run. One block of a module runs at a time.
struct State {
    Lane *now;
    Index block, block_size, grid_size;
    unsigned char *shared;        // dynamic shared memory
    unsigned long long shared_bytes;
    const Services *services;
    // Static shared memory, to be spoilt before each block.
    unsigned char *static_begin, *static_end;
};

// A kernel as its module describes it.
struct Kernel {
    const char *name;
    void (*call)(void *const *parameters);
    int parameter_count;
    unsigned parameter_bytes[8];
    int most_threads;  // by its launch bounds
};

// What a module shows to the driver under the name `standin_module`.
struct Description {
    State *state;
    const Kernel *kernels;
    int kernel_count;
};

}  // namespace standin
