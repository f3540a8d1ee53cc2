// The stand-in's memory: on the card, and page-locked on the host. Nothing here locks; whoever calls holds
// the driver's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace standin {

enum class Place { CARD, MODULE, HOST };

struct Block {
    uint64_t begin;
    size_t bytes;   // as requested
    Place place;
    int card;
    char *mapping;  // with its guards; null for a module's own memory
    size_t mapped;
};

// What a card's memory held at some time, but for large blocks.
class Past {
public:
    // What was there then; what is there now where nothing was kept.
    const unsigned char *at(const unsigned char *p) const;

private:
    friend class Memory;
    std::map<uint64_t, std::vector<unsigned char>> blocks;
};

class Memory {
public:
    // Fresh memory that holds nothing sensible, its end before addresses that nobody may touch; 0 if there is
    // none.
    uint64_t allocate(Place place, int card, size_t bytes);
    // False if no block begins there, or one in another place.
    bool release(Place place, uint64_t begin);
    // Memory that a module brings with it.
    void adopt(int card, uint64_t begin, size_t bytes);
    void disown(uint64_t begin);
    // The block that holds all of these bytes.
    const Block *find(uint64_t begin, size_t bytes) const;
    void keep(Past &past, int card) const;
    bool is_locked(const void *begin) const;
    size_t bytes_on(int card) const;
    size_t bytes_on_host() const;
    // What was written behind the ends of blocks that were freed since the last call.
    std::string complaint();

private:
    std::map<uint64_t, Block> blocks;
    std::vector<Block> freed;  // kept for a while, so that nothing else gets their addresses
    std::string overrun;
};

}  // namespace standin
