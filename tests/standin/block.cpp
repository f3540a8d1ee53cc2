#include "block.h"

#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <sys/mman.h>
#include <vector>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace standin {
namespace {

enum Error { ILLEGAL_ADDRESS = 700, MISALIGNED_OR_OVERFLOW = 716, LAUNCH_FAILED = 719 };

constexpr size_t PAGE = 4096;
constexpr size_t STACK = 64 << 10;
constexpr size_t MOST_THREADS = 1024;
constexpr unsigned WARP = 32;
// What memory holds before anybody wrote to it.
constexpr unsigned char SPOILT = 0xB7;

// Saves the registers that a call keeps, stores the stack pointer in *from, and goes on where `to` was left.
extern "C" void standin_switch(void **from, void *to);

#if defined(__x86_64__)
asm(R"(
    .text
    .type standin_switch, @function
standin_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size standin_switch, . - standin_switch
)");
constexpr size_t SAVED = 6, RETURN = 6;
#elif defined(__aarch64__)
asm(R"(
    .text
    .type standin_switch, %function
standin_switch:
    sub sp, sp, #160
    stp x19, x20, [sp, #0]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp, #0]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
    .size standin_switch, . - standin_switch
)");
constexpr size_t SAVED = 20, RETURN = 11;
#else
#error "the stand-in's switch between fibers is not written for this processor"
#endif

struct Team;
struct Thread;

// A stack on which threads of a block run, one after another as far as they never wait.
struct Fiber {
    Team *team;
    void *saved;
    Thread *thread;
};

struct PendingCopy {
    unsigned to;
    const unsigned char *from;
    int bytes;
    int group;
};

struct PendingTile {
    unsigned to;
    const TileMapWords *map;
    int x, y;
    unsigned long long *arrivals;
    const Past *before;  // that it is copied from; null for what is there
};

enum class Standing { READY, AT_WARP, AT_BLOCK, AT_BYTES, DONE };

struct Thread {
    Lane lane;  // first, since kernels hand it over
    Team *team;
    Fiber *fiber;  // null until it begins
    unsigned number;
    Standing standing;
    int group;  // of copies, the one that is open
    bool waited;  // for earlier launches
    std::vector<PendingCopy> copies;
};

// One thread of the host with the fibers that it switches between.
struct Team {
    void *stacks = nullptr;
    std::vector<Fiber> fibers;
    std::vector<Fiber *> idle;
    size_t begun = 0;  // fibers that have a stack in use or idle
    std::vector<Thread> threads{MOST_THREADS};
    std::vector<PendingTile> tiles;
    const Past *before = nullptr;
    Fiber host{nullptr, nullptr, nullptr};  // where the host's thread goes on
    unsigned char *shared = nullptr;
    size_t shared_room = 0;

    // The block in flight.
    State *state = nullptr;
    const Kernel *kernel = nullptr;
    void *const *parameters = nullptr;
    unsigned count = 0, done = 0, waiting = 0;
    uint32_t ready[MOST_THREADS / WARP] = {};    // a bit a lane
    unsigned arrived[MOST_THREADS / WARP] = {};  // lanes of each warp at an instruction of the whole warp
    bool downwards = false, restless = false;
    Random random{0};

    // The way out of a kernel that broke down.
    sigjmp_buf way_out;
    bool in_kernel = false;
    std::string why;
    int code = 0;

    Team();
    ~Team();
    void begin_block(unsigned threads);
    Thread *pick(unsigned warp);
    void leave(Fiber *me, Thread *next);
    void resume(Thread &thread);
    [[noreturn]] void break_down(int code, std::string why);
    unsigned lanes(unsigned warp) const { return count - warp * WARP < WARP ? count - warp * WARP : WARP; }
};

thread_local Team *current = nullptr;

void enter_fiber(Fiber *me)
{
    Team &team = *me->team;
    for (;;) {
        team.kernel->call(team.parameters);
        Thread &thread = *me->thread;
        if (team.before && !thread.waited)
            team.break_down(LAUNCH_FAILED,
                            "a thread of a launch that may begin early never waited for earlier ones");
        thread.standing = Standing::DONE;
        ++team.done;
        Thread *next = team.pick(thread.number / WARP);
        if (next && !next->fiber) {
            // The next one has not begun, so it can have this stack at once.
            next->fiber = me;
            me->thread = next;
            team.state->now = &next->lane;
            continue;
        }
        team.idle.push_back(me);
        team.leave(me, next);
    }
}

// A new fiber comes here from `standin_switch`, whose return finds no caller; the fiber is the one of the
// thread that is to run.
void fiber_entry()
{
    enter_fiber(reinterpret_cast<Thread *>(current->state->now)->fiber);
}

Team::Team()
{
    stacks = mmap(nullptr, (STACK + PAGE) * MOST_THREADS, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (stacks == MAP_FAILED) {
        fprintf(stderr, "stand-in: no room for the stacks of a block\n");
        abort();
    }
    // A page below each stack that nobody may touch.
    for (size_t k = 0; k < MOST_THREADS; ++k) mprotect((char *)stacks + k * (STACK + PAGE), PAGE, PROT_NONE);
    fibers.resize(MOST_THREADS);
}

Team::~Team()
{
    munmap(stacks, (STACK + PAGE) * MOST_THREADS);
    if (shared) munmap(shared - PAGE, shared_room + 2 * PAGE);
}

// The next thread to run, of `warp` if one of it can; null if none can.
Thread *Team::pick(unsigned warp)
{
    const unsigned warps = (count + WARP - 1) / WARP;
    if (restless || !ready[warp]) {
        const unsigned first = (unsigned)random.below(warps);
        unsigned step = 0;
        while (step < warps && !ready[(first + step) % warps]) ++step;
        if (step == warps) return nullptr;
        warp = (first + step) % warps;
    }
    const uint32_t bits = ready[warp];
    const unsigned lane = downwards ? 31 - (unsigned)__builtin_clz(bits) : (unsigned)__builtin_ctz(bits);
    ready[warp] &= ~(1u << lane);
    return &threads[warp * WARP + lane];
}

// Goes from the fiber `me` to the thread `next`; to the host if there is none.
void Team::leave(Fiber *me, Thread *next)
{
    if (!next) {
        standin_switch(&me->saved, host.saved);
        return;
    }
    if (!next->fiber) {
        Fiber *fiber;
        if (!idle.empty()) {
            fiber = idle.back();
            idle.pop_back();
        } else {
            fiber = &fibers[begun];
            // Not all tops at the same place of a page, since a processor's caches would then hold few of
            // them.
            char *top = (char *)stacks + (begun + 1) * (STACK + PAGE) - begun * 448 % PAGE;
            ++begun;
            void **frame = (void **)top - 2 - SAVED - 2;
            // So that the stack lies as after a call: a multiple of 16 bytes, and a return address.
            memset(frame, 0, SAVED * sizeof(void *));
            frame[RETURN] = (void *)fiber_entry;
            *fiber = Fiber{this, frame, nullptr};
        }
        next->fiber = fiber;
        fiber->thread = next;
    }
    state->now = &next->lane;
    if (next->fiber != me) standin_switch(&me->saved, next->fiber->saved);
}

void Team::resume(Thread &thread)
{
    thread.standing = Standing::READY;
    ready[thread.number / WARP] |= 1u << thread.number % WARP;
}

void Team::break_down(int with, std::string reason)
{
    why = std::move(reason);
    code = with;
    siglongjmp(way_out, 1);
}

void Team::begin_block(unsigned number)
{
    count = number;
    done = waiting = 0;
    tiles.clear();
    for (unsigned k = 0; k < count; ++k) {
        Thread &thread = threads[k];
        thread.team = this;
        thread.fiber = nullptr;
        thread.number = k;
        thread.standing = Standing::READY;
        thread.group = 0;
        thread.waited = false;
        thread.copies.clear();
        const Index &size = state->block_size;
        thread.lane.index = Index{k % size.x, k / size.x % size.y, k / size.x / size.y};
    }
    for (unsigned warp = 0; warp * WARP < count; ++warp) {
        const unsigned n = lanes(warp);
        ready[warp] = n == WARP ? ~0u : (1u << n) - 1;
        arrived[warp] = 0;
    }
}

Thread &thread_of(Lane *lane)
{
    return *reinterpret_cast<Thread *>(lane);
}

// All others ready run before the lane goes on.
void wait(Thread &me, Standing standing)
{
    me.standing = standing;
    Team &team = *me.team;
    team.leave(me.fiber, team.pick(me.number / WARP));
}

void meet_block(Lane *lane)
{
    Thread &me = thread_of(lane);
    Team &team = *me.team;
    if (++team.waiting < team.count) {
        wait(me, Standing::AT_BLOCK);
        return;
    }
    team.waiting = 0;
    for (unsigned k = 0; k < team.count; ++k) team.resume(team.threads[k]);
    // Whoever came last need not go on first.
    wait(me, Standing::READY);
}

// Bytes as numbers.
void widen(const uint8_t *from, int16_t *to, int count, bool is_signed)
{
    if (is_signed) {
        for (int k = 0; k < count; ++k) to[k] = (int8_t)from[k];
    } else {
        for (int k = 0; k < count; ++k) to[k] = from[k];
    }
}

constexpr int DEPTH = 32;

// The sums of products of rows of `a` and of `b`.
void multiply_all(const int16_t (&a)[16][DEPTH], const int16_t (&b)[8][DEPTH], int (&sums)[16][8])
{
#if defined(__SSE2__)
    // Pairs of numbers of all of b's rows beside each other, so that the sums of four of them are added up at
    // once.
    alignas(64) int32_t pairs[DEPTH / 2][8];
    for (int n = 0; n < 8; ++n) {
        for (int k = 0; k < DEPTH / 2; ++k) memcpy(&pairs[k][n], &b[n][2 * k], 4);
    }
    for (int m = 0; m < 16; ++m) {
        __m128i left = _mm_setzero_si128(), right = left;
        for (int k = 0; k < DEPTH / 2; ++k) {
            int32_t two;
            memcpy(&two, &a[m][2 * k], 4);
            const __m128i both = _mm_set1_epi32(two);
            left = _mm_add_epi32(left, _mm_madd_epi16(both, _mm_load_si128((const __m128i *)&pairs[k][0])));
            right = _mm_add_epi32(right, _mm_madd_epi16(both, _mm_load_si128((const __m128i *)&pairs[k][4])));
        }
        _mm_store_si128((__m128i *)&sums[m][0], left);
        _mm_store_si128((__m128i *)&sums[m][4], right);
    }
#else
    for (int m = 0; m < 16; ++m) {
        for (int n = 0; n < 8; ++n) {
            sums[m][n] = 0;
            for (int k = 0; k < DEPTH; ++k) sums[m][n] += a[m][k] * b[n][k];
        }
    }
#endif
}

// D = A B + C for the lanes of a warp, as PTX defines the fragments of mma.m16n8k32 and mma.m16n8k16.
void multiply(Team &team, Thread *lanes, int kind)
{
    alignas(64) uint8_t a_bytes[16][DEPTH] = {}, b_bytes[8][DEPTH] = {};
    const int halves = kind & DEEP ? 2 : 1;
    for (int lane = 0; lane < 32; ++lane) {
        const Exchange &e = lanes[lane].lane.exchange;
        const int g = lane / 4, t = lane % 4;
        for (int half = 0; half < halves; ++half) {
            memcpy(&a_bytes[g][16 * half + 4 * t], &e.a[2 * half], 4);
            memcpy(&a_bytes[g + 8][16 * half + 4 * t], &e.a[2 * half + 1], 4);
            memcpy(&b_bytes[g][16 * half + 4 * t], &e.b[half], 4);
        }
    }
    alignas(64) int16_t a[16][DEPTH], b[8][DEPTH];
    widen(a_bytes[0], a[0], 16 * DEPTH, kind & SIGNED_A);
    widen(b_bytes[0], b[0], 8 * DEPTH, kind & SIGNED_B);
    alignas(64) int sums[16][8];
    multiply_all(a, b, sums);
    bool overflow = false;
    for (int lane = 0; lane < 32; ++lane) {
        Exchange &e = lanes[lane].lane.exchange;
        for (int k = 0; k < 4; ++k)
            overflow |=
                __builtin_add_overflow(sums[lane / 4 + k / 2 * 8][lane % 4 * 2 + k % 2], e.c[k], &e.d[k]);
    }
    if (overflow && !(kind & WRAPS))
        team.break_down(MISALIGNED_OR_OVERFLOW, "a sum of products of bytes left its 32 bits");
}

void meet_warp(Lane *lane)
{
    Thread &me = thread_of(lane);
    Team &team = *me.team;
    const unsigned warp = me.number / WARP, count = team.lanes(warp);
    if (++team.arrived[warp] < count) {
        wait(me, Standing::AT_WARP);
        return;
    }
    team.arrived[warp] = 0;
    Thread *lanes = &team.threads[warp * WARP];
    const int kind = me.lane.exchange.kind;
    for (unsigned k = 0; k < count; ++k) {
        if (lanes[k].lane.exchange.kind != kind)
            team.break_down(LAUNCH_FAILED, "the lanes of a warp met at different instructions");
    }
    if (kind >= MULTIPLY) {
        if (count < WARP) team.break_down(LAUNCH_FAILED, "a warp of fewer than 32 lanes multiplied matrices");
        multiply(team, lanes, kind);
    } else if (kind != MEET) {
        for (unsigned k = 0; k < count; ++k) {
            Exchange &e = lanes[k].lane.exchange;
            const unsigned other = (kind == SHUFFLE_XOR ? k ^ (unsigned)e.c[0] : (unsigned)e.c[0]) % WARP;
            if (other >= count)
                team.break_down(LAUNCH_FAILED, "a shuffle asked for a lane that there is not");
            e.d[0] = (int)lanes[other].lane.exchange.a[0];
        }
    }
    for (unsigned k = 0; k < count; ++k) {
        if (k != me.number % WARP) team.resume(lanes[k]);
    }
}

// Who has not waited for earlier launches finds what was there before them; null for who has.
const Past *past_of(const Thread &thread)
{
    return thread.waited ? nullptr : thread.team->before;
}

const unsigned char *seen(const Past *past, const unsigned char *p)
{
    return past ? past->at(p) : p;
}

// Nobody may look at what is copied before the copy was waited for, so it is spoilt first and copied then.
void copy(Lane *lane, unsigned to, const unsigned char *from, int bytes)
{
    Thread &me = thread_of(lane);
    Team &team = *me.team;
    if ((uintptr_t)from % 16 || to % 16 || bytes < 0 || bytes > 16) {
        team.break_down(MISALIGNED_OR_OVERFLOW,
                        "an asynchronous copy of 16 bytes was not aligned to them, or of more");
    }
    if (to + 16ull > team.state->shared_bytes)
        team.break_down(ILLEGAL_ADDRESS, "an asynchronous copy went beyond shared memory");
    memset(team.state->shared + to, SPOILT, 16);
    me.copies.push_back(PendingCopy{to, seen(past_of(me), from), bytes, me.group});
}

void end_of_copies(Lane *lane)
{
    ++thread_of(lane).group;
}

void wait_for_copies(Lane *lane, int but)
{
    Thread &me = thread_of(lane);
    size_t kept = 0;
    for (PendingCopy &copy : me.copies) {
        if (copy.group >= me.group - but) {
            me.copies[kept++] = copy;
            continue;
        }
        unsigned char *to = me.team->state->shared + copy.to;
        memcpy(to, copy.from, copy.bytes);
        memset(to + copy.bytes, 0, 16 - copy.bytes);
    }
    me.copies.resize(kept);
}

// Arrivals as a word: what says that they are begun, bytes that are expected (none: no round is in flight),
// and how many rounds have ended.
constexpr uint64_t BEGUN = 0xA881ull << 48, BEGUN_MASK = 0xFFFFull << 48, ROUNDS = 0xFFFF;
constexpr int BYTES = 16;

uint64_t begun(Team &team, unsigned long long *arrivals)
{
    if ((*arrivals & BEGUN_MASK) != BEGUN)
        team.break_down(LAUNCH_FAILED, "arrivals of bytes were used that were never begun");
    return *arrivals;
}

void begin_arrivals(Lane *, unsigned long long *arrivals)
{
    *arrivals = BEGUN;
}

void expect_bytes(Lane *lane, unsigned long long *arrivals, unsigned bytes)
{
    Team &team = *thread_of(lane).team;
    const uint64_t word = begun(team, arrivals);
    if ((word & ~BEGUN_MASK) >> BYTES)
        team.break_down(LAUNCH_FAILED, "bytes were expected before the last ones had arrived");
    *arrivals = word | (uint64_t)bytes << BYTES;
}

size_t tile_bytes(const TileMapWords &map)
{
    return 8 * map.tile_width * map.tile_height;
}

// As with copies of 16 bytes, nobody may look before the tile was waited for.
void copy_tile(Lane *lane, unsigned to, const unsigned long long *words, int x, int y,
               unsigned long long *arrivals)
{
    Team &team = *thread_of(lane).team;
    const auto *map = (const TileMapWords *)words;
    if (map->is_one != TileMapWords::IS_ONE)
        team.break_down(MISALIGNED_OR_OVERFLOW, "a tile was copied by a map that is none");
    begun(team, arrivals);
    if (to % 128)
        team.break_down(MISALIGNED_OR_OVERFLOW, "a tile was copied to an address that is no multiple of 128");
    if (to + tile_bytes(*map) > team.state->shared_bytes)
        team.break_down(ILLEGAL_ADDRESS, "a tile was copied beyond shared memory");
    memset(team.state->shared + to, SPOILT, tile_bytes(*map));
    team.tiles.push_back(PendingTile{to, map, x, y, arrivals, past_of(thread_of(lane))});
    for (unsigned k = 0; k < team.count; ++k) {
        if (team.threads[k].standing == Standing::AT_BYTES) team.resume(team.threads[k]);
    }
}

void bring(Team &team, const PendingTile &tile)
{
    const TileMapWords &map = *tile.map;
    auto *to = team.state->shared + tile.to;
    for (size_t r = 0; r < map.tile_height; ++r) {
        for (size_t k = 0; k < map.tile_width; ++k, to += 8) {
            const uint64_t column = (uint64_t)(tile.x + (int64_t)k), row = (uint64_t)(tile.y + (int64_t)r);
            if (column < map.width && row < map.height) {
                memcpy(
                    to,
                    seen(tile.before, (const unsigned char *)map.rows_begin + row * map.pitch + 8 * column),
                    8);
            } else {
                memset(to, 0, 8);
            }
        }
    }
}

void wait_for_bytes(Lane *lane, unsigned long long *arrivals, int odd)
{
    Thread &me = thread_of(lane);
    Team &team = *me.team;
    for (;;) {
        const uint64_t word = begun(team, arrivals);
        if ((int)(word & 1) != odd) return;
        const uint64_t expected = (word & ~BEGUN_MASK) >> BYTES;
        size_t asked = 0, kept = 0;
        for (const PendingTile &tile : team.tiles)
            asked += tile.arrivals == arrivals ? tile_bytes(*tile.map) : 0;
        if (expected && asked > expected)
            team.break_down(LAUNCH_FAILED, "more bytes were copied than are expected");
        if (expected && asked == expected) {
            for (const PendingTile &tile : team.tiles) {
                if (tile.arrivals == arrivals) {
                    bring(team, tile);
                } else {
                    team.tiles[kept++] = tile;
                }
            }
            team.tiles.resize(kept);
            *arrivals = BEGUN | ((word & ROUNDS) + 1);
            return;
        }
        wait(me, Standing::AT_BYTES);
    }
}

void wait_for_earlier_launches(Lane *lane)
{
    thread_of(lane).waited = true;
}

void fail(const char *why)
{
    current->break_down(LAUNCH_FAILED, why);
}

constexpr Services SERVICES = {meet_block,
                               meet_warp,
                               copy,
                               end_of_copies,
                               wait_for_copies,
                               begin_arrivals,
                               expect_bytes,
                               copy_tile,
                               wait_for_bytes,
                               wait_for_earlier_launches,
                               fail};

// --- faults ------------------------------------------------------------------------------------------------

constexpr int FAULTS[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE};
struct sigaction before[64];

// A fault in a kernel ends the kernel; any other is what it was before.
void on_fault(int signal, siginfo_t *info, void *context)
{
    Team *team = current;
    if (team && team->in_kernel) {
        const Index at = team->state->block, thread = team->state->now->index;
        char text[200];
        const char *what = signal == SIGSEGV || signal == SIGBUS ? "touched memory that is not its own"
                           : signal == SIGFPE
                               ? "divided by zero"
                               : "overflowed a signed number, left an array or touched a misaligned address";
        snprintf(text, sizeof text, "block (%u, %u, %u), thread (%u, %u, %u) %s", at.x, at.y, at.z, thread.x,
                 thread.y, thread.z, what);
        team->why = text;
        if (signal == SIGSEGV || signal == SIGBUS) {
            snprintf(text, sizeof text, " (%p)", info->si_addr);
            team->why += text;
        }
        team->code = signal == SIGSEGV || signal == SIGBUS ? ILLEGAL_ADDRESS : MISALIGNED_OR_OVERFLOW;
        siglongjmp(team->way_out, 1);
    }
    const struct sigaction &old = before[signal];
    if (old.sa_flags & SA_SIGINFO) {
        old.sa_sigaction(signal, info, context);
    } else if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) {
        old.sa_handler(signal);
    } else {
        sigaction(signal, &old, nullptr);
    }
}

void catch_faults()
{
    static std::once_flag once;
    std::call_once(once, [] {
        struct sigaction action = {};
        action.sa_sigaction = on_fault;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
        for (const int signal : FAULTS) sigaction(signal, &action, &before[signal]);
    });
}

// A handler needs a stack of its own, since a fiber's may be what is full.
struct SignalStack {
    std::vector<char> memory;

    SignalStack()
    {
        stack_t old = {};
        if (sigaltstack(nullptr, &old) == 0 && !(old.ss_flags & SS_DISABLE)) return;
        memory.resize(64 << 10);
        stack_t mine = {};
        mine.ss_sp = memory.data();
        mine.ss_size = memory.size();
        sigaltstack(&mine, nullptr);
    }

    ~SignalStack()
    {
        if (memory.empty()) return;
        stack_t none = {};
        none.ss_flags = SS_DISABLE;
        sigaltstack(&none, nullptr);
    }
};

// --- teams -------------------------------------------------------------------------------------------------

std::mutex teams_lock;
std::vector<std::unique_ptr<Team>> idle_teams;

std::unique_ptr<Team> take_team()
{
    const std::lock_guard<std::mutex> lock(teams_lock);
    if (idle_teams.empty()) return std::make_unique<Team>();
    std::unique_ptr<Team> team = std::move(idle_teams.back());
    idle_teams.pop_back();
    return team;
}

// Shared memory of just as many bytes, before a page that nobody may touch.
unsigned char *fit_shared(Team &team, size_t bytes)
{
    const size_t need = (bytes + PAGE - 1) / PAGE * PAGE;
    if (team.shared_room < need || !team.shared) {
        if (team.shared) munmap(team.shared - PAGE, team.shared_room + 2 * PAGE);
        char *all = (char *)mmap(nullptr, need + 2 * PAGE, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        mprotect(all, PAGE, PROT_NONE);
        mprotect(all + PAGE + need, PAGE, PROT_NONE);
        team.shared = (unsigned char *)all + PAGE;
        team.shared_room = need;
    }
    return team.shared + team.shared_room - (bytes + 15) / 16 * 16;
}

// Where threads stand that will never go on.
std::string stuck(const Team &team)
{
    unsigned at_warp = 0, at_block = 0, at_bytes = 0;
    for (unsigned k = 0; k < team.count; ++k) {
        at_warp += team.threads[k].standing == Standing::AT_WARP;
        at_block += team.threads[k].standing == Standing::AT_BLOCK;
        at_bytes += team.threads[k].standing == Standing::AT_BYTES;
    }
    const Index at = team.state->block;
    char text[250];
    snprintf(text, sizeof text,
             "of %u threads of block (%u, %u, %u), %u wait at a barrier, %u at an instruction of a whole "
             "warp, %u for bytes that nobody copies, and %u have ended",
             team.count, at.x, at.y, at.z, at_block, at_warp, at_bytes, team.done);
    return text;
}

// Runs the blocks of a grid, each wholly before the next.
void run_blocks(Team &team, const Grid &grid)
{
    State &state = *team.state;
    const Index &blocks = grid.blocks;
    const uint64_t count = (uint64_t)blocks.x * blocks.y * blocks.z;
    // Every block once, in steps that share no factor with their number.
    uint64_t step = 1 + team.random.below(count), at = team.random.below(count);
    while (std::gcd(step, count) != 1) ++step;
    for (uint64_t k = 0; k < count; ++k, at = (at + step) % count) {
        state.block = Index{(unsigned)(at % blocks.x), (unsigned)(at / blocks.x % blocks.y),
                            (unsigned)(at / blocks.x / blocks.y)};
        memset(state.shared, SPOILT, state.shared_bytes);
        if (state.static_begin) memset(state.static_begin, SPOILT, state.static_end - state.static_begin);
        team.downwards = team.random.below(2);
        team.restless = team.random.below(2);
        team.begin_block(grid.threads.x * grid.threads.y * grid.threads.z);
        team.leave(&team.host, team.pick(0));
        if (team.done < team.count) team.break_down(LAUNCH_FAILED, stuck(team));
    }
}

}  // namespace

std::string run_grid(const Description &module, const Kernel &kernel, const Grid &grid,
                     void *const *parameters, uint64_t seed, int &code)
{
    catch_faults();
    const SignalStack signal_stack;
    std::unique_ptr<Team> owned = take_team();
    Team &team = *owned;
    team.state = module.state;
    team.kernel = &kernel;
    team.parameters = parameters;
    team.random = Random{seed};
    team.before = grid.before;
    State &state = *module.state;
    state.services = &SERVICES;
    state.block_size = grid.threads;
    state.grid_size = grid.blocks;
    state.shared = fit_shared(team, grid.shared_bytes);
    state.shared_bytes = grid.shared_bytes;
    team.why.clear();
    team.code = 0;
    current = &team;
    team.in_kernel = true;
    if (sigsetjmp(team.way_out, 1) == 0) {
        run_blocks(team, grid);
    } else {
        // What the fibers were doing is lost; their stacks begin anew.
        team.begun = 0;
        team.idle.clear();
    }
    team.in_kernel = false;
    current = nullptr;
    code = team.code;
    const std::string why = team.why;
    const std::lock_guard<std::mutex> lock(teams_lock);
    idle_teams.push_back(std::move(owned));
    return why;
}

}  // namespace standin
