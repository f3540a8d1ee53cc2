// H.264 whose pictures hold their samples as they are: each is one IDR slice of I_PCM macroblocks, which any
// decoder gives back bit by bit.
#pragma once

#include <cstdint>
#include <vector>

namespace standin {

using Bytes = std::vector<uint8_t>;

// What the stream says of its pictures.
struct Sequence {
    unsigned width, height;                // both even
    unsigned aspect_across, aspect_down;   // of a pixel
    bool is_full_range;
    unsigned primaries, transfer, matrix;  // 2 if they are not known
};

// A picture of 4:2:0: where the samples of each component begin, and the bytes from sample to sample and from
// row to row.
struct Samples {
    const uint8_t *begin[3];
    unsigned step[3], pitch[3];
};

// Sequence and picture parameter sets.
Bytes parameter_sets(const Sequence &sequence);
// The slice of picture number `number`.
Bytes picture(const Sequence &sequence, const Samples &samples, uint64_t number);

}  // namespace standin
