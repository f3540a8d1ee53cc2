#include "memory.h"

#include <cstdio>
#include <cstring>
#include <sys/mman.h>
#include <utility>

namespace standin {
namespace {

constexpr size_t PAGE = 4096;
// What nobody may touch before and behind a block. It costs addresses, no memory.
constexpr size_t GUARD = 4 << 20;
// What the driver's blocks are aligned to; textures want no more.
constexpr size_t ALIGNMENT = 512;
constexpr unsigned char SPOILT = 0xB7;
constexpr size_t KEPT = 256;
// Larger blocks are not remembered.
constexpr size_t MOST_REMEMBERED = 1 << 20;

size_t rounded(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

// Bytes that a block takes: its end is as near to the page behind it as the alignment allows.
size_t taken(const Block &block)
{
    return rounded(block.bytes, block.place == Place::HOST ? PAGE : ALIGNMENT);
}

}  // namespace

uint64_t Memory::allocate(Place place, int card, size_t bytes)
{
    Block block{0, bytes, place, card, nullptr, 0};
    const size_t inner = rounded(taken(block), PAGE);
    block.mapped = inner + 2 * GUARD;
    void *mapping =
        mmap(nullptr, block.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED) return 0;
    block.mapping = (char *)mapping;
    if (mprotect(block.mapping + GUARD, inner, PROT_READ | PROT_WRITE) != 0) {
        munmap(mapping, block.mapped);
        return 0;
    }
    block.begin = (uint64_t)(block.mapping + GUARD + inner - taken(block));
    memset(block.mapping + GUARD, SPOILT, inner);
    blocks[block.begin] = block;
    return block.begin;
}

bool Memory::release(Place place, uint64_t begin)
{
    const auto found = blocks.find(begin);
    if (found == blocks.end() || found->second.place != place) return false;
    const Block block = found->second;
    blocks.erase(found);
    const unsigned char *end = (const unsigned char *)(begin + block.bytes);
    for (const unsigned char *p = end; p < (const unsigned char *)(begin + taken(block)); ++p) {
        if (*p == SPOILT) continue;
        char text[100];
        snprintf(text, sizeof text, "%td bytes behind a block of %zu something was written", p - end,
                 block.bytes);
        overrun = text;
        break;
    }
    // Nobody may touch it any more.
    mmap(block.mapping, block.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
         0);
    freed.push_back(block);
    if (freed.size() > KEPT) {
        munmap(freed.front().mapping, freed.front().mapped);
        freed.erase(freed.begin());
    }
    return true;
}

void Memory::adopt(int card, uint64_t begin, size_t bytes)
{
    blocks[begin] = Block{begin, bytes, Place::MODULE, card, nullptr, 0};
}

void Memory::disown(uint64_t begin)
{
    blocks.erase(begin);
}

const Block *Memory::find(uint64_t begin, size_t bytes) const
{
    auto after = blocks.upper_bound(begin);
    if (after == blocks.begin()) return nullptr;
    const Block &block = (--after)->second;
    return begin - block.begin <= block.bytes && bytes <= block.bytes - (begin - block.begin) ? &block
                                                                                              : nullptr;
}

const unsigned char *Past::at(const unsigned char *p) const
{
    auto after = blocks.upper_bound((uint64_t)p);
    if (after == blocks.begin()) return p;
    const auto &[begin, bytes] = *--after;
    return (uint64_t)p - begin < bytes.size() ? bytes.data() + ((uint64_t)p - begin) : p;
}

void Memory::keep(Past &past, int card) const
{
    past.blocks.clear();
    for (const auto &[begin, block] : blocks) {
        if (block.place != Place::CARD || block.card != card || block.bytes > MOST_REMEMBERED) continue;
        const auto *first = (const unsigned char *)begin;
        // With what an aligned row's last 16 bytes may go beyond it.
        past.blocks[begin].assign(first, first + taken(block));
    }
}

bool Memory::is_locked(const void *begin) const
{
    const Block *block = find((uint64_t)begin, 1);
    return block && block->place == Place::HOST;
}

size_t Memory::bytes_on(int card) const
{
    size_t sum = 0;
    for (const auto &[begin, block] : blocks)
        sum += block.place == Place::CARD && block.card == card ? taken(block) : 0;
    return sum;
}

size_t Memory::bytes_on_host() const
{
    size_t sum = 0;
    for (const auto &[begin, block] : blocks) sum += block.place == Place::HOST ? taken(block) : 0;
    return sum;
}

std::string Memory::complaint()
{
    return std::exchange(overrun, std::string());
}

}  // namespace standin
