#include "h264.h"

#include <algorithm>

namespace standin {
namespace {

// The payload of a NAL unit, bit by bit, the highest first.
class Bits {
public:
    void put(unsigned count, uint32_t value)
    {
        while (count-- != 0) {
            if (free == 0) {
                bytes.push_back(0);
                free = 8;
            }
            bytes.back() |= (value >> count & 1) << --free;
        }
    }
    // Exp-Golomb codes, of a number and of one that may be below 0.
    void number(uint32_t value)
    {
        unsigned length = 0;
        while ((value + 1) >> (length + 1)) ++length;
        put(length, 0);
        put(length + 1, value + 1);
    }
    void align() { free = 0; }
    void byte(uint8_t value) { bytes.push_back(value); }
    // A whole unit behind its start code: what would look like a start code within gets a byte that decoders
    // take out again.
    Bytes unit(uint8_t head)
    {
        put(1, 1);
        align();
        Bytes unit = {0, 0, 0, 1, head};
        int zeros = 0;
        for (const uint8_t byte : bytes) {
            if (zeros == 2 && byte <= 3) {
                unit.push_back(3);
                zeros = 0;
            }
            unit.push_back(byte);
            zeros = byte == 0 ? zeros + 1 : 0;
        }
        return unit;
    }

private:
    Bytes bytes;
    unsigned free = 0;  // bits of the last byte
};

unsigned blocks(unsigned pixels)
{
    return (pixels + 15) / 16;
}

constexpr uint8_t SEQUENCE_SET = 0x67, PICTURE_SET = 0x68, IDR_SLICE = 0x65;

}  // namespace

Bytes parameter_sets(const Sequence &sequence)
{
    Bits set;
    set.put(8, 66);    // baseline
    set.put(8, 0x40);  // constrained
    set.put(8, 51);    // level 5.1
    set.number(0);     // the set's number
    set.number(0);     // frame numbers of 4 bits
    set.number(2);     // pictures are shown in the order of the stream
    set.number(1);     // reference frames
    set.put(1, 0);     // without gaps
    set.number(blocks(sequence.width) - 1);
    set.number(blocks(sequence.height) - 1);
    set.put(1, 1);  // frames only
    set.put(1, 1);  // direct_8x8_inference
    const unsigned right = blocks(sequence.width) * 16 - sequence.width;
    const unsigned bottom = blocks(sequence.height) * 16 - sequence.height;
    set.put(1, right != 0 || bottom != 0);
    if (right != 0 || bottom != 0) {
        // In chroma samples.
        for (const unsigned cut : {0u, right / 2, 0u, bottom / 2}) set.number(cut);
    }
    set.put(1, 1);  // what follows is about the display
    set.put(1, 1);
    set.put(8, 255);
    set.put(16, sequence.aspect_across);
    set.put(16, sequence.aspect_down);
    set.put(1, 0);  // overscan
    set.put(1, 1);
    set.put(3, 5);  // no video format
    set.put(1, sequence.is_full_range);
    set.put(1, 1);
    set.put(8, sequence.primaries);
    set.put(8, sequence.transfer);
    set.put(8, sequence.matrix);
    set.put(1, 0);  // chroma's place
    set.put(1, 0);  // times
    set.put(2, 0);  // buffers
    set.put(1, 0);  // structure of pictures
    set.put(1, 0);  // restrictions
    Bytes all = set.unit(SEQUENCE_SET);

    Bits other;
    other.number(0);  // the set's number
    other.number(0);  // its sequence's
    other.put(1, 0);  // no arithmetic coding
    other.put(1, 0);
    other.number(0);  // one group of slices
    other.number(0);  // references
    other.number(0);
    other.put(3, 0);   // no weights
    other.number(0);   // quantisers
    other.number(0);
    other.number(0);
    other.put(1, 1);  // slices say whether blocks' edges are smoothed
    other.put(2, 0);
    const Bytes unit = other.unit(PICTURE_SET);
    all.insert(all.end(), unit.begin(), unit.end());
    return all;
}

Bytes picture(const Sequence &sequence, const Samples &samples, uint64_t number)
{
    constexpr unsigned I_PCM = 25;
    Bits slice;
    slice.number(0);           // the first macroblock
    slice.number(7);           // all slices are intra-coded
    slice.number(0);           // the set's number
    slice.put(4, 0);           // the frame's number
    slice.number(number % 2);  // two IDR pictures in a row differ in this
    slice.put(2, 0);
    slice.number(0);  // quantiser
    slice.number(1);  // edges stay as they are
    for (unsigned down = 0; down < blocks(sequence.height); ++down) {
        for (unsigned across = 0; across < blocks(sequence.width); ++across) {
            slice.number(I_PCM);
            slice.align();
            for (int c = 0; c < 3; ++c) {
                const unsigned size = c == 0 ? 16 : 8, shift = c == 0 ? 0 : 1;
                for (unsigned k = 0; k < size * size; ++k) {
                    // What is cut off repeats the last column and row.
                    const unsigned x = std::min(across * size + k % size, (sequence.width >> shift) - 1);
                    const unsigned y = std::min(down * size + k / size, (sequence.height >> shift) - 1);
                    slice.byte(samples.begin[c][(size_t)y * samples.pitch[c] + x * samples.step[c]]);
                }
            }
        }
    }
    return slice.unit(IDR_SLICE);
}

}  // namespace standin
