// The CUDA driver's entry points, as far as framepipe calls them, for a card that is made of this machine's
// processor and memory.
//
//   FRAMEPIPE_STANDIN_CARDS        how many cards there are; 1 if it says nothing
//   FRAMEPIPE_STANDIN_CAPABILITY   their compute capability times ten; 90
//   FRAMEPIPE_STANDIN_MEMORY       bytes that each has; 1 GiB
//   FRAMEPIPE_STANDIN_SEED         in which order threads, blocks and streams go, and how lazily; 0
//   FRAMEPIPE_STANDIN_FAIL         CALL:N:CODE: the Nth call of this entry point fails with this code;
//                                  CALL:N:CODE:on and all calls of anything after it
//   FRAMEPIPE_STANDIN_IGNORE       CALL: this entry point does nothing and says that all is well
//   FRAMEPIPE_STANDIN_IGNORE_WAIT  W:E: stream W does not wait for events of stream E; they are numbered as
//                                  they are made
//   FRAMEPIPE_STANDIN_REPORT       a file that lists at the end which calls were made how often, how many
//                                  bytes went to the host, and what was not freed
//
// Those that FFmpeg calls, and those that it only looks for, are behind framepipe's own.

#include "image.h"
#include "lane.h"
#include "memory.h"
#include "queue.h"
#include "settings.h"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <map>
#include <set>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

using namespace standin;
using std::shared_ptr;
using std::string;

namespace {

enum Code {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    NO_BINARY_FOR_GPU = 209,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    NOT_READY = 600,
    ILLEGAL_ADDRESS = 700,
    LAUNCH_OUT_OF_RESOURCES = 701,
    LAUNCH_FAILED = 719,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_UNMATCHED = 903,
    GRAPH_EXEC_UPDATE_FAILURE = 910,
};

const std::map<int, std::pair<const char *, const char *>> NAMES = {
    {SUCCESS, {"CUDA_SUCCESS", "no error"}},
    {INVALID_VALUE, {"CUDA_ERROR_INVALID_VALUE", "invalid argument"}},
    {OUT_OF_MEMORY, {"CUDA_ERROR_OUT_OF_MEMORY", "out of memory"}},
    {NOT_INITIALIZED, {"CUDA_ERROR_NOT_INITIALIZED", "initialization error"}},
    {NO_DEVICE, {"CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"}},
    {INVALID_DEVICE, {"CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"}},
    {INVALID_IMAGE, {"CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"}},
    {INVALID_CONTEXT, {"CUDA_ERROR_INVALID_CONTEXT", "invalid device context"}},
    {NO_BINARY_FOR_GPU,
     {"CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"}},
    {INVALID_HANDLE, {"CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"}},
    {NOT_FOUND, {"CUDA_ERROR_NOT_FOUND", "named symbol not found"}},
    {NOT_READY, {"CUDA_ERROR_NOT_READY", "device not ready"}},
    {ILLEGAL_ADDRESS, {"CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"}},
    {LAUNCH_OUT_OF_RESOURCES,
     {"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"}},
    {716, {"CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"}},
    {LAUNCH_FAILED, {"CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"}},
    {CAPTURE_UNSUPPORTED,
     {"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"}},
    {CAPTURE_UNMATCHED, {"CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "capture was not initiated in this stream"}},
    {GRAPH_EXEC_UPDATE_FAILURE,
     {"CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",
      "the graph update was not performed because it included changes which violated constraints specific to "
      "instantiated graph update"}},
    {999, {"CUDA_ERROR_UNKNOWN", "unknown error"}},
};

using Held = std::unique_lock<std::mutex>;

struct Context {
    int card;
    int retained = 0;
    shared_ptr<Stream> plain;  // where work goes that names no stream
};

struct StreamHandle {
    Context *context;
    shared_ptr<Stream> stream;
};

struct EventHandle {
    Context *context;
    bool is_timed;
    shared_ptr<Moment> last;
    int stream = -1;  // that it was recorded in last
};

struct Module {
    Context *context;
    void *library;
    int file;
    const Description *description;
    std::mutex running;  // one block of a module at a time
    bool is_loaded = true;
    std::set<uint64_t> globals;
};

struct Function {
    shared_ptr<Module> module;
    const Kernel *kernel;
    size_t most_shared = 48 << 10;
};

struct GraphHandle {
    shared_ptr<Graph> graph;
};

// Things that the caller holds by their address, so that a wrong or an old one is noticed.
template <class T> class Handles {
public:
    T *add(T *thing)
    {
        live.insert(thing);
        return thing;
    }
    bool has(const void *thing) const { return live.count((T *)thing) != 0; }
    bool remove(T *thing)
    {
        if (live.erase(thing) == 0) return false;
        delete thing;
        return true;
    }
    size_t count() const { return live.size(); }
    template <class Which> void remove_all(Which which)
    {
        for (auto at = live.begin(); at != live.end();) {
            T *thing = *at++;
            if (which(*thing)) remove(thing);
        }
    }

private:
    std::set<T *> live;
};

struct Card {
    unsigned capability;
    size_t memory;

    // Bytes of shared memory of a multiprocessor, and those that a block may ask for.
    size_t shared() const
    {
        return capability == 75    ? 64 << 10
               : capability == 80  ? 164 << 10
               : capability >= 120 ? 100 << 10
                                   : 228 << 10;
    }
    size_t most_shared() const { return capability == 75 ? 64 << 10 : shared() - 1024; }
    int threads() const { return capability == 75 ? 1024 : capability >= 120 ? 1536 : 2048; }
};

// So few that blocks of the tensor-core kernels go through several tiles of small frames.
constexpr int MULTIPROCESSORS = 1;

// All there is.
struct Driver {
    const Card card{(unsigned)number("CAPABILITY", 90), (size_t)number("MEMORY", 1 << 30)};
    const int cards = (int)number("CARDS", 1);
    Queues queues{number("SEED", 0)};
    Memory memory;
    bool is_initialised = false;
    uint64_t downloaded = 0;  // bytes
    std::vector<Context> contexts = std::vector<Context>(cards);
    Handles<StreamHandle> streams;
    Handles<EventHandle> events;
    std::map<Module *, shared_ptr<Module>> modules;
    Handles<Function> functions;
    Handles<GraphHandle> graphs;
    std::set<Texture *> textures;
    Handles<Context> others;  // contexts that are nobody's primary one
    std::map<string, unsigned> calls;
    string complaints;
    bool fails_on = false;
    const string fail = setting("FAIL"), ignore = setting("IGNORE"), ignore_wait = setting("IGNORE_WAIT");

    void complain(const string &what)
    {
        fprintf(stderr, "stand-in: %s\n", what.c_str());
        complaints += "complaint " + what + '\n';
    }

    // What is allocated, made or retained now.
    std::vector<std::pair<const char *, size_t>> left() const
    {
        size_t on_cards = 0, live_textures = 0, retained = 0;
        for (int k = 0; k < cards; ++k) on_cards += memory.bytes_on(k);
        for (const Texture *texture : textures) live_textures += texture->live;
        for (const Context &context : contexts) retained += context.retained;
        retained += others.count();
        return {{"card-bytes", on_cards},     {"host-bytes", memory.bytes_on_host()},
                {"streams", streams.count()}, {"events", events.count()},
                {"modules", modules.size()},  {"graphs", graphs.count()},
                {"textures", live_textures},  {"contexts", retained}};
    }

    ~Driver();
};

Driver &driver()
{
    static Driver all;
    return all;
}

Driver::~Driver()
{
    const string path = setting("REPORT");
    FILE *file = path.empty() ? nullptr : fopen(path.c_str(), "a");
    if (!file) return;
    for (const auto &[name, count] : calls) fprintf(file, "call %s %u\n", name.c_str(), count);
    for (const auto &[what, count] : left()) fprintf(file, "left %s %zu\n", what, count);
    fprintf(file, "moved to-the-host %llu\n", (unsigned long long)downloaded);
    fputs(complaints.c_str(), file);
    fclose(file);
}

thread_local Context *bound = nullptr;
// Streams that this thread captures now.
thread_local int capturing = 0;

// What a call does about a failure that was requested.
enum class Manner {
    INSTEAD,    // it does nothing
    BESIDES,    // it does its work: what is given back is gone, and what was waited for is over
};

// Counts a call; what is to be returned at once, if anything is.
struct Call {
    int code = SUCCESS;
    bool ends = false;  // return `code` now
    Held held{driver().queues.lock};

    explicit Call(const char *name, Manner manner = Manner::INSTEAD, bool needs_context = true)
    {
        Driver &d = driver();
        const unsigned count = ++d.calls[name];
        const string &fail = d.fail;
        const size_t length = strlen(name);
        if (d.fails_on) {
            code = atoi(fail.c_str() + fail.find(':', fail.find(':') + 1) + 1);
        } else if (fail.compare(0, length, name) == 0 && fail[length] == ':') {
            unsigned at = 0;
            int with = 0;
            char on[4] = "";
            if (sscanf(fail.c_str() + length, ":%u:%d:%3s", &at, &with, on) >= 2 && at == count) {
                code = with;
                d.fails_on = strcmp(on, "on") == 0;
            }
        }
        if (code == SUCCESS && d.ignore == name) {
            ends = true;
        } else if (code != SUCCESS) {
            ends = manner == Manner::INSTEAD;
        } else if (!d.is_initialised && strcmp(name, "cuInit") != 0) {
            refuse(NOT_INITIALIZED);
        } else if (needs_context && !bound) {
            d.complain(string(name) + " was called without a context");
            refuse(INVALID_CONTEXT);
        } else if (needs_context && d.queues.broken.code != 0) {
            // An error of what runs on the card is returned by every call after it, though what is given back
            // is gone.
            code = d.queues.broken.code;
            ends = manner == Manner::INSTEAD;
        }
    }

    void refuse(int with)
    {
        code = with;
        ends = true;
    }

    // The call's result, where its own work ended with `result`.
    int give(int result = SUCCESS) const
    {
        const Driver &d = driver();
        return code != SUCCESS ? code : result != SUCCESS ? result : d.queues.broken.code;
    }
};

#define BEGIN(...)            \
    Call call(__VA_ARGS__);   \
    Driver &d = driver();     \
    (void)d;                  \
    if (call.ends) return call.code

Outcome broke_down(int code, const string &why)
{
    fprintf(stderr, "stand-in: %s\n", why.c_str());
    return Outcome{code, why};
}

// Where work goes that names this stream: none, or one of the driver's own, which are 1 and 2.
shared_ptr<Stream> stream_of(const void *handle)
{
    Driver &d = driver();
    if ((uintptr_t)handle <= 2) {
        if (!bound->plain) bound->plain = d.queues.make();
        return bound->plain;
    }
    return d.streams.has(handle) ? ((const StreamHandle *)handle)->stream : nullptr;
}

int enqueue(Call &call, const void *handle, Work work)
{
    Driver &d = driver();
    const shared_ptr<Stream> stream = stream_of(handle);
    if (!stream) return INVALID_HANDLE;
    if (stream->capture) {
        stream->capture->push_back(std::move(work));
        return SUCCESS;
    }
    Operation operation;
    operation.work = std::move(work);
    d.queues.enqueue(call.held, stream, std::move(operation));
    return SUCCESS;
}

// One end of a copy.
struct End {
    bool is_on_card;
    uint64_t begin;
    size_t pitch;
};

// Whether the rows lie in one block of the card's memory.
bool is_valid(const End &end, size_t width, size_t rows)
{
    return driver().memory.find(end.begin, rows == 0 ? 0 : (rows - 1) * end.pitch + width);
}

// Enqueues a copy of rows. Copies from ordinary memory take what it holds now; those to ordinary memory are
// over when this returns.
int copy_rows(Call &call, const void *stream, End to, End from, size_t width, size_t rows)
{
    Driver &d = driver();
    if (width > to.pitch || width > from.pitch) return INVALID_VALUE;
    for (const End &end : {to, from}) {
        if (end.is_on_card && !is_valid(end, width, rows)) {
            d.complain("a copy leaves its block of the card's memory");
            return INVALID_VALUE;
        }
    }
    const auto is_locked = [&](const End &end) { return d.memory.is_locked((const void *)end.begin); };
    const auto waits_for_host = [&](const End &end) { return !end.is_on_card && !is_locked(end); };
    shared_ptr<std::vector<char>> staged;
    const shared_ptr<Stream> into = stream_of(stream);
    if (!into) return INVALID_HANDLE;
    if (into->capture && (waits_for_host(to) || waits_for_host(from))) return CAPTURE_UNSUPPORTED;
    if (waits_for_host(from)) {
        staged = std::make_shared<std::vector<char>>(width * rows);
        for (size_t y = 0; y < rows; ++y)
            memcpy(staged->data() + y * width, (const char *)from.begin + y * from.pitch, width);
        from = End{false, (uint64_t)staged->data(), width};
    } else if (!to.is_on_card && is_locked(to)) {
        // Nobody may look at it before it is there.
        for (size_t y = 0; y < rows; ++y) memset((char *)to.begin + y * to.pitch, 0xB7, width);
    }
    if (from.is_on_card && !to.is_on_card) d.downloaded += width * rows;
    const bool is_locked_end[2] = {!to.is_on_card && is_locked(to), !from.is_on_card && !staged};
    const int result = enqueue(call, stream, [=]() -> Outcome {
        {
            const Held held(driver().queues.lock);
            const End *ends[2] = {&to, &from};
            for (int k = 0; k < 2; ++k) {
                if ((ends[k]->is_on_card || is_locked_end[k]) && !is_valid(*ends[k], width, rows)) {
                    return broke_down(ILLEGAL_ADDRESS, "a copy was in flight when its memory was freed");
                }
            }
        }
        for (size_t y = 0; y < rows; ++y)
            memcpy((char *)to.begin + y * to.pitch, (const char *)from.begin + y * from.pitch, width);
        (void)staged;
        return {};
    });
    if (result == SUCCESS && waits_for_host(to)) d.queues.finish(call.held, into.get());
    return result;
}

int copy_bytes(Call &call, const void *stream, bool to_card, uint64_t to, bool from_card, uint64_t from,
               size_t bytes)
{
    return copy_rows(call, stream, End{to_card, to, bytes}, End{from_card, from, bytes}, bytes, 1);
}

int fill_rows(Call &call, const void *stream, uint64_t to, size_t pitch, unsigned value, size_t value_bytes,
              size_t width, size_t rows)
{
    Driver &d = driver();
    const End end{true, to, pitch};
    if (width * value_bytes > pitch || to % value_bytes != 0 || pitch % value_bytes != 0)
        return INVALID_VALUE;
    if (!is_valid(end, width * value_bytes, rows)) {
        d.complain("a fill leaves its block of the card's memory");
        return INVALID_VALUE;
    }
    return enqueue(call, stream, [=]() -> Outcome {
        {
            const Held held(driver().queues.lock);
            if (!is_valid(end, width * value_bytes, rows))
                return broke_down(ILLEGAL_ADDRESS, "a fill was in flight when its memory was freed");
        }
        for (size_t y = 0; y < rows; ++y) {
            for (size_t x = 0; x < width; ++x)
                memcpy((char *)to + y * pitch + x * value_bytes, &value, value_bytes);
        }
        return {};
    });
}

}  // namespace

extern "C" {

// For a process that goes through many cases: does what is enqueued yet, revives a card that broke down, and
// lets orders and laziness begin anew with this seed. Returns what was wrong since the last call and what is
// not given back; an empty text if all is well. It is kept until the next call.
const char *standin_begin(uint64_t seed)
{
    static string report;
    Driver &d = driver();
    Held held(d.queues.lock);
    d.queues.finish(held, nullptr);
    report = std::exchange(d.complaints, string());
    const Outcome broken = std::exchange(d.queues.broken, Outcome());
    if (broken.code != 0) report += "broken " + broken.why + '\n';
    d.queues.begin(seed);
    // No kernel is in flight that could use them yet.
    for (auto at = d.textures.begin(); at != d.textures.end();) {
        Texture *texture = *at++;
        if (texture->live) continue;
        d.textures.erase(texture);
        delete texture;
    }
    for (const auto &[what, count] : d.left()) {
        if (count != 0) report += string("left ") + what + ' ' + std::to_string(count) + '\n';
    }
    return report.c_str();
}

// --- the driver and its cards ------------------------------------------------------------------------------

int cuInit(unsigned)
{
    BEGIN("cuInit", Manner::INSTEAD, false);
    d.is_initialised = true;
    return call.give(d.cards > 0 ? SUCCESS : NO_DEVICE);
}

int cuDriverGetVersion(int *version)
{
    BEGIN("cuDriverGetVersion", Manner::INSTEAD, false);
    *version = 13000;
    return SUCCESS;
}

int cuGetErrorName(int code, const char **text)
{
    const auto found = NAMES.find(code);
    *text = found == NAMES.end() ? nullptr : found->second.first;
    return *text ? SUCCESS : INVALID_VALUE;
}

int cuGetErrorString(int code, const char **text)
{
    const auto found = NAMES.find(code);
    *text = found == NAMES.end() ? nullptr : found->second.second;
    return *text ? SUCCESS : INVALID_VALUE;
}

int cuDeviceGetCount(int *count)
{
    BEGIN("cuDeviceGetCount", Manner::INSTEAD, false);
    *count = d.cards;
    return SUCCESS;
}

int cuDeviceGet(int *device, int ordinal)
{
    BEGIN("cuDeviceGet", Manner::INSTEAD, false);
    if (ordinal < 0 || ordinal >= d.cards) return INVALID_DEVICE;
    *device = ordinal;
    return SUCCESS;
}

int cuDeviceGetName(char *name, int length, int)
{
    BEGIN("cuDeviceGetName", Manner::INSTEAD, false);
    snprintf(name, length, "stand-in for a card");
    return SUCCESS;
}

int cuDeviceTotalMem_v2(size_t *bytes, int)
{
    BEGIN("cuDeviceTotalMem_v2", Manner::INSTEAD, false);
    *bytes = d.card.memory;
    return SUCCESS;
}

int cuDeviceGetAttribute(int *value, int attribute, int)
{
    BEGIN("cuDeviceGetAttribute", Manner::INSTEAD, false);
    switch (attribute) {
    case 1: *value = 1024; return SUCCESS;                     // threads of a block
    case 2: *value = 1024; return SUCCESS;                     // across
    case 3: *value = 1024; return SUCCESS;                     // down
    case 8: *value = 48 << 10; return SUCCESS;                 // bytes of shared memory that a block gets
    case 12: *value = 65536; return SUCCESS;                   // registers of a block
    case 14: *value = 512; return SUCCESS;                     // what textures are aligned to
    case 16: *value = MULTIPROCESSORS; return SUCCESS;
    case 38: *value = 16 << 10; return SUCCESS;                // bytes of the level-2 cache
    case 40: *value = 2; return SUCCESS;                       // copies at a time
    case 70: *value = 131072; return SUCCESS;                  // texels across
    case 71: *value = 65000; return SUCCESS;                   // rows of a texture
    case 72: *value = 2097120; return SUCCESS;                 // bytes from row to row
    case 75: *value = (int)d.card.capability / 10; return SUCCESS;
    case 76: *value = (int)d.card.capability % 10; return SUCCESS;
    case 81: *value = (int)d.card.shared(); return SUCCESS;    // bytes of shared memory of a multiprocessor
    case 97: *value = (int)d.card.most_shared(); return SUCCESS;
    default:
        d.complain("an attribute of the card was requested that the stand-in does not know");
        return INVALID_VALUE;
    }
}

int cuDevicePrimaryCtxRetain(Context **context, int device)
{
    BEGIN("cuDevicePrimaryCtxRetain", Manner::INSTEAD, false);
    if (device < 0 || device >= d.cards) return INVALID_DEVICE;
    *context = &d.contexts[device];
    (*context)->card = device;
    ++(*context)->retained;
    return SUCCESS;
}

int cuDevicePrimaryCtxRelease_v2(int device)
{
    BEGIN("cuDevicePrimaryCtxRelease_v2", Manner::BESIDES, false);
    if (device < 0 || device >= d.cards || d.contexts[device].retained == 0) return INVALID_CONTEXT;
    --d.contexts[device].retained;
    return call.give();
}

int cuCtxSetCurrent(Context *context)
{
    BEGIN("cuCtxSetCurrent", Manner::INSTEAD, false);
    if (context && context->retained == 0) {
        d.complain("a context was entered that was given back");
        return INVALID_CONTEXT;
    }
    bound = context;
    return SUCCESS;
}

int cuCtxGetCurrent(Context **context)
{
    BEGIN("cuCtxGetCurrent", Manner::INSTEAD, false);
    *context = bound;
    return SUCCESS;
}

int cuCtxSynchronize()
{
    BEGIN("cuCtxSynchronize", Manner::BESIDES);
    if (capturing) return CAPTURE_UNSUPPORTED;
    d.queues.finish(call.held, nullptr);
    return call.give();
}

// --- memory ------------------------------------------------------------------------------------------------

int cuMemGetInfo_v2(size_t *free, size_t *total)
{
    BEGIN("cuMemGetInfo_v2");
    *total = d.card.memory;
    *free = d.card.memory - d.memory.bytes_on(bound->card);
    return SUCCESS;
}

int cuMemAlloc_v2(uint64_t *begin, size_t bytes)
{
    BEGIN("cuMemAlloc_v2");
    if (capturing) return CAPTURE_UNSUPPORTED;
    if (bytes == 0) return INVALID_VALUE;
    if (bytes + 511 > d.card.memory - d.memory.bytes_on(bound->card)) return OUT_OF_MEMORY;
    *begin = d.memory.allocate(Place::CARD, bound->card, bytes);
    return *begin ? SUCCESS : OUT_OF_MEMORY;
}

// A driver may wait here for what uses the memory, but nobody promises that.
int cuMemFree_v2(uint64_t begin)
{
    BEGIN("cuMemFree_v2", Manner::BESIDES);
    if (!d.memory.release(Place::CARD, begin)) {
        d.complain("memory of the card was freed that was not allocated");
        return INVALID_VALUE;
    }
    if (const string overrun = d.memory.complaint(); !overrun.empty()) d.complain(overrun);
    return call.give();
}

// The number of the card that holds an address, and nothing else that a driver knows of it.
int cuPointerGetAttribute(void *data, int attribute, uint64_t address)
{
    BEGIN("cuPointerGetAttribute", Manner::INSTEAD, false);
    const Block *block = d.memory.find(address, 1);
    if (attribute != 9 || !block || block->place == Place::HOST) return INVALID_VALUE;
    *(int *)data = block->card;
    return SUCCESS;
}

int cuMemHostAlloc(void **begin, size_t bytes, unsigned)
{
    BEGIN("cuMemHostAlloc");
    if (bytes == 0) return INVALID_VALUE;
    *begin = (void *)d.memory.allocate(Place::HOST, bound->card, bytes);
    return *begin ? SUCCESS : OUT_OF_MEMORY;
}

int cuMemFreeHost(void *begin)
{
    BEGIN("cuMemFreeHost", Manner::BESIDES);
    if (!d.memory.release(Place::HOST, (uint64_t)begin)) {
        d.complain("page-locked memory was freed that was not allocated");
        return INVALID_VALUE;
    }
    if (const string overrun = d.memory.complaint(); !overrun.empty()) d.complain(overrun);
    return call.give();
}

// --- copies ------------------------------------------------------------------------------------------------

// May return before the bytes are where they belong: only the ordinary memory that they come from is free
// again.
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes)
{
    BEGIN("cuMemcpyHtoD_v2");
    const bool is_over = d.memory.is_locked(from) || d.queues.perhaps(2);
    const int result = copy_bytes(call, nullptr, true, to, false, (uint64_t)from, bytes);
    if (result == SUCCESS && is_over) d.queues.finish(call.held, stream_of(nullptr).get());
    return call.give(result);
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes)
{
    BEGIN("cuMemcpyDtoH_v2");
    const int result = copy_bytes(call, nullptr, false, (uint64_t)to, true, from, bytes);
    if (result == SUCCESS) d.queues.finish(call.held, stream_of(nullptr).get());
    return call.give(result);
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream)
{
    BEGIN("cuMemcpyHtoDAsync_v2");
    return call.give(copy_bytes(call, stream, true, to, false, (uint64_t)from, bytes));
}

int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream)
{
    BEGIN("cuMemcpyDtoHAsync_v2");
    return call.give(copy_bytes(call, stream, false, (uint64_t)to, true, from, bytes));
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream)
{
    BEGIN("cuMemcpyDtoDAsync_v2");
    return call.give(copy_bytes(call, stream, true, to, true, from, bytes));
}

// CUDA_MEMCPY2D.
struct Copy2D {
    size_t from_x, from_y;
    unsigned from_place;  // 1: the host, 2: the card
    const void *from_host;
    uint64_t from_card;
    void *from_array;
    size_t from_pitch;
    size_t to_x, to_y;
    unsigned to_place;
    void *to_host;
    uint64_t to_card;
    void *to_array;
    size_t to_pitch;
    size_t width, height;
};

int cuMemcpy2DAsync_v2(const Copy2D *copy, void *stream)
{
    BEGIN("cuMemcpy2DAsync_v2");
    const auto is_plain = [](unsigned place) { return place == 1 || place == 2; };
    if (!is_plain(copy->from_place) || !is_plain(copy->to_place)) return INVALID_VALUE;
    const auto end = [](unsigned place, uint64_t host, uint64_t card, size_t x, size_t y, size_t pitch) {
        return End{place == 2, (place == 2 ? card : host) + y * pitch + x, pitch};
    };
    const End from = end(copy->from_place, (uint64_t)copy->from_host, copy->from_card, copy->from_x,
                         copy->from_y, copy->from_pitch);
    const End to =
        end(copy->to_place, (uint64_t)copy->to_host, copy->to_card, copy->to_x, copy->to_y, copy->to_pitch);
    return call.give(copy_rows(call, stream, to, from, copy->width, copy->height));
}

int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t count)
{
    BEGIN("cuMemsetD8_v2");
    return call.give(fill_rows(call, nullptr, to, count, value, 1, count, 1));
}

int cuMemsetD8Async(uint64_t to, unsigned char value, size_t count, void *stream)
{
    BEGIN("cuMemsetD8Async");
    return call.give(fill_rows(call, stream, to, count, value, 1, count, 1));
}

int cuMemsetD2D8Async(uint64_t to, size_t pitch, unsigned char value, size_t width, size_t rows, void *stream)
{
    BEGIN("cuMemsetD2D8Async");
    return call.give(fill_rows(call, stream, to, pitch, value, 1, width, rows));
}

int cuMemsetD2D16Async(uint64_t to, size_t pitch, unsigned short value, size_t width, size_t rows,
                       void *stream)
{
    BEGIN("cuMemsetD2D16Async");
    return call.give(fill_rows(call, stream, to, pitch, value, 2, width, rows));
}

// --- streams and events ------------------------------------------------------------------------------------

int cuStreamCreate(StreamHandle **stream, unsigned flags)
{
    BEGIN("cuStreamCreate");
    if (flags != 1) {
        d.complain("a stream was made that waits for work without a stream; the stand-in knows only those "
                   "that do not");
        return INVALID_VALUE;
    }
    *stream = d.streams.add(new StreamHandle{bound, d.queues.make()});
    return SUCCESS;
}

int cuStreamDestroy_v2(StreamHandle *stream)
{
    BEGIN("cuStreamDestroy_v2", Manner::BESIDES);
    if (!d.streams.has(stream)) return INVALID_HANDLE;
    d.queues.forget(stream->stream);
    d.streams.remove(stream);
    return call.give();
}

int cuStreamSynchronize(StreamHandle *stream)
{
    BEGIN("cuStreamSynchronize", Manner::BESIDES);
    const shared_ptr<Stream> what = stream_of(stream);
    if (!what) return INVALID_HANDLE;
    if (what->capture) return CAPTURE_UNSUPPORTED;
    d.queues.finish(call.held, what.get());
    return call.give();
}

int cuStreamWaitEvent(StreamHandle *stream, EventHandle *event, unsigned)
{
    BEGIN("cuStreamWaitEvent");
    const shared_ptr<Stream> what = stream_of(stream);
    if (!what || !d.events.has(event)) return INVALID_HANDLE;
    if (what->capture) return CAPTURE_UNSUPPORTED;
    if (!event->last) return SUCCESS;
    if (d.ignore_wait == std::to_string(what->number) + ':' + std::to_string(event->stream)) return SUCCESS;
    Operation operation;
    operation.waits_for = event->last;
    d.queues.enqueue(call.held, what, std::move(operation));
    return call.give();
}

int cuEventCreate(EventHandle **event, unsigned flags)
{
    BEGIN("cuEventCreate");
    *event = d.events.add(new EventHandle{bound, (flags & 2) == 0, nullptr});
    return SUCCESS;
}

int cuEventDestroy_v2(EventHandle *event)
{
    BEGIN("cuEventDestroy_v2", Manner::BESIDES);
    return call.give(d.events.remove(event) ? SUCCESS : INVALID_HANDLE);
}

int cuEventRecord(EventHandle *event, StreamHandle *stream)
{
    BEGIN("cuEventRecord");
    const shared_ptr<Stream> what = stream_of(stream);
    if (!what || !d.events.has(event)) return INVALID_HANDLE;
    if (what->capture) return CAPTURE_UNSUPPORTED;
    event->last = std::make_shared<Moment>();
    event->stream = what->number;
    Operation operation;
    operation.marks = event->last;
    d.queues.enqueue(call.held, what, std::move(operation));
    return call.give();
}

int cuEventQuery(EventHandle *event)
{
    BEGIN("cuEventQuery");
    if (capturing) return CAPTURE_UNSUPPORTED;
    if (!d.events.has(event)) return INVALID_HANDLE;
    const shared_ptr<Moment> moment = event->last;
    if (moment && !moment->done) d.queues.step(call.held);
    return call.give(!moment || moment->done ? SUCCESS : NOT_READY);
}

int cuEventElapsedTime(float *milliseconds, EventHandle *begin, EventHandle *end)
{
    BEGIN("cuEventElapsedTime");
    if (!d.events.has(begin) || !d.events.has(end)) return INVALID_HANDLE;
    if (!begin->is_timed || !end->is_timed || !begin->last || !end->last) return INVALID_HANDLE;
    if (!begin->last->done || !end->last->done) return NOT_READY;
    *milliseconds = (float)((end->last->at - begin->last->at) * 1e3);
    return SUCCESS;
}

// --- kernels -----------------------------------------------------------------------------------------------

int cuModuleLoadData(Module **module, const void *image)
{
    BEGIN("cuModuleLoadData");
    ImageHead head;
    memcpy(&head, image, sizeof head);
    if (memcmp(head.magic, MAGIC, sizeof MAGIC) != 0) return INVALID_IMAGE;
    const bool fits = head.is_portable ? head.architecture <= d.card.capability
                                       : head.architecture / 10 == d.card.capability / 10 &&
                                             head.architecture <= d.card.capability;
    if (!fits) return NO_BINARY_FOR_GPU;
    // The file stays open as long as the module is loaded: the loader knows libraries by their names, and the
    // number is the name.
    const int file = memfd_create("kernels", MFD_CLOEXEC);
    const char *bytes = (const char *)image + sizeof head;
    if (file < 0 || write(file, bytes, head.bytes) != (ssize_t)head.bytes) {
        close(file);
        return OUT_OF_MEMORY;
    }
    void *library = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
    const auto *description = library ? (const Description *)dlsym(library, "standin_module") : nullptr;
    if (!description) {
        const char *why = dlerror();
        d.complain(string("a module cannot be loaded: ") + (why ? why : "it is none of the stand-in's"));
        if (library) dlclose(library);
        close(file);
        return INVALID_IMAGE;
    }
    auto made = std::make_shared<Module>();
    made->context = bound;
    made->library = library;
    made->file = file;
    made->description = description;
    *module = made.get();
    d.modules[made.get()] = made;
    return SUCCESS;
}

int cuModuleUnload(Module *module)
{
    BEGIN("cuModuleUnload", Manner::BESIDES);
    const auto found = d.modules.find(module);
    if (found == d.modules.end()) return INVALID_HANDLE;
    const shared_ptr<Module> kept = found->second;
    d.modules.erase(found);
    d.functions.remove_all([&](const Function &function) { return function.module == kept; });
    for (const uint64_t begin : kept->globals) d.memory.disown(begin);
    kept->is_loaded = false;
    // A launch that is in flight keeps the code until it has noticed.
    call.held.unlock();
    const std::lock_guard<std::mutex> running(kept->running);
    dlclose(kept->library);
    close(kept->file);
    return call.give();
}

int cuModuleGetFunction(Function **function, Module *module, const char *name)
{
    BEGIN("cuModuleGetFunction");
    const auto found = d.modules.find(module);
    if (found == d.modules.end()) return INVALID_HANDLE;
    for (int k = 0; k < module->description->kernel_count; ++k) {
        const Kernel &kernel = module->description->kernels[k];
        if (strcmp(kernel.name, name) != 0) continue;
        *function = d.functions.add(new Function{found->second, &kernel});
        return SUCCESS;
    }
    return NOT_FOUND;
}

int cuModuleGetGlobal_v2(uint64_t *begin, size_t *bytes, Module *module, const char *name)
{
    BEGIN("cuModuleGetGlobal_v2");
    if (d.modules.count(module) == 0) return INVALID_HANDLE;
    void *symbol = dlsym(module->library, name);
    Dl_info info;
    const ElfW(Sym) *entry = nullptr;
    if (!symbol || !dladdr1(symbol, &info, (void **)&entry, RTLD_DL_SYMENT) || !entry) return NOT_FOUND;
    *begin = (uint64_t)symbol;
    *bytes = entry->st_size;
    if (module->globals.insert(*begin).second) d.memory.adopt(bound->card, *begin, *bytes);
    return SUCCESS;
}

int cuFuncGetAttribute(int *value, int attribute, Function *function)
{
    BEGIN("cuFuncGetAttribute");
    if (!d.functions.has(function)) return INVALID_HANDLE;
    if (attribute != 0) return INVALID_VALUE;
    *value = function->kernel->most_threads;
    return SUCCESS;
}

int cuFuncSetAttribute(Function *function, int attribute, int value)
{
    BEGIN("cuFuncSetAttribute");
    if (!d.functions.has(function)) return INVALID_HANDLE;
    if (attribute != 8 || value < 0 || (size_t)value > d.card.most_shared()) return INVALID_VALUE;
    function->most_shared = value;
    return SUCCESS;
}

int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, Function *function, int threads, size_t shared)
{
    BEGIN("cuOccupancyMaxActiveBlocksPerMultiprocessor");
    if (!d.functions.has(function)) return INVALID_HANDLE;
    if (threads <= 0 || threads > function->kernel->most_threads) return INVALID_VALUE;
    *blocks = std::min<int>(d.card.threads() / threads, (int)(d.card.shared() / (shared + 1024)));
    return SUCCESS;
}

static int launch(Call &call, Function *function, Grid grid, bool is_early, void *handle, void **parameters)
{
    Driver &d = driver();
    if (!d.functions.has(function)) return INVALID_HANDLE;
    const Index &blocks = grid.blocks;
    const uint64_t threads = (uint64_t)grid.threads.x * grid.threads.y * grid.threads.z;
    if (!blocks.x || !blocks.y || !blocks.z || blocks.x > 0x7fffffff || blocks.y > 65535 ||
        blocks.z > 65535 || !threads || threads > 1024) {
        return INVALID_VALUE;
    }
    if (grid.shared_bytes > function->most_shared) return INVALID_VALUE;
    if (threads > (unsigned)function->kernel->most_threads) return LAUNCH_OUT_OF_RESOURCES;
    const Kernel &kernel = *function->kernel;
    // The driver copies the parameters before it returns.
    auto values = std::make_shared<std::vector<std::vector<char>>>();
    for (int k = 0; k < kernel.parameter_count; ++k) {
        const char *from = (const char *)parameters[k];
        values->emplace_back(from, from + kernel.parameter_bytes[k]);
    }
    const shared_ptr<Module> module = function->module;
    const uint64_t seed = d.queues.random.next();
    const shared_ptr<Stream> stream = stream_of(handle);
    if (!stream) return INVALID_HANDLE;
    if (!is_early || !stream->before) stream->before = std::make_shared<Past>();
    const shared_ptr<Past> before = stream->before;
    const int result = enqueue(call, handle, [=, &kernel]() mutable -> Outcome {
        const std::lock_guard<std::mutex> running(module->running);
        {
            const Held held(driver().queues.lock);
            if (!module->is_loaded)
                return broke_down(LAUNCH_FAILED, "a kernel was in flight when its module was unloaded");
            if (!is_early) driver().memory.keep(*before, module->context->card);
        }
        grid.before = is_early ? before.get() : nullptr;
        std::vector<void *> pointers;
        for (std::vector<char> &value : *values) pointers.push_back(value.data());
        int code = SUCCESS;
        const string why = run_grid(*module->description, kernel, grid, pointers.data(), seed, code);
        return code == SUCCESS ? Outcome{} : broke_down(code, string(kernel.name) + ": " + why);
    });
    return call.give(result);
}

int cuLaunchKernel(Function *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **parameters,
                   void **)
{
    BEGIN("cuLaunchKernel");
    return launch(call, function,
                  Grid{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared, nullptr}, false, stream,
                  parameters);
}

// CUlaunchAttribute.
struct Attribute {
    int id;
    char pad[4];
    union {
        int flag;
        char bytes[64];
    };
};

// CUlaunchConfig.
struct Configuration {
    Index grid, block;
    unsigned shared;
    void *stream;
    const Attribute *attributes;
    unsigned count;
};

int cuLaunchKernelEx(const Configuration *configuration, Function *function, void **parameters, void **)
{
    BEGIN("cuLaunchKernelEx");
    constexpr int MAY_BEGIN_EARLY = 6;
    const Configuration &c = *configuration;
    if (c.count != 1 || c.attributes->id != MAY_BEGIN_EARLY) {
        d.complain("a kernel was launched with attributes that the stand-in does not know");
        return INVALID_VALUE;
    }
    return launch(call, function, Grid{c.grid, c.block, c.shared, nullptr}, c.attributes->flag != 0, c.stream,
                  parameters);
}

// --- maps of tiles -----------------------------------------------------------------------------------------

int cuTensorMapEncodeTiled(TileMapWords *map, int type, unsigned rank, void *begin, const uint64_t *size,
                           const uint64_t *pitch, const unsigned *tile, const unsigned *steps, int interleave,
                           int swizzle, int, int fill)
{
    BEGIN("cuTensorMapEncodeTiled");
    constexpr int EIGHT_BYTES = 8;
    if (type != EIGHT_BYTES || rank != 2 || interleave || swizzle || fill || steps[0] != 1 || steps[1] != 1) {
        d.complain("a map of tiles was made of a kind that the stand-in does not know");
        return INVALID_VALUE;
    }
    const bool is_aligned = (uintptr_t)begin % 16 == 0 && pitch[0] % 16 == 0 && tile[0] * 8 % 16 == 0;
    if (!is_aligned || !size[0] || !size[1] || !tile[0] || !tile[1] || tile[0] > 256 || tile[1] > 256 ||
        (uintptr_t)map % 64)
        return INVALID_VALUE;
    *map = TileMapWords{TileMapWords::IS_ONE, (uintptr_t)begin, size[0], size[1], pitch[0], tile[0], tile[1]};
    return call.give();
}

// --- textures ----------------------------------------------------------------------------------------------

// CUDA_RESOURCE_DESC of rows in linear memory.
struct Resource {
    int kind;
    uint64_t begin;
    int format;
    unsigned channels;
    size_t width, height, pitch;
};

// CUDA_TEXTURE_DESC.
struct Sampling {
    int address[3];
    int filter;
    unsigned flags;
};

int cuTexObjectCreate(uint64_t *object, const Resource *resource, const Sampling *sampling, const void *)
{
    BEGIN("cuTexObjectCreate");
    constexpr int ROWS = 3, CLAMP = 1, POINT = 0, AS_INTEGERS = 1;
    const std::map<int, std::pair<int, int>> formats = {{1, {1, 0}}, {2, {2, 0}}, {3, {4, 0}},
                                                        {8, {1, 1}}, {9, {2, 1}}, {10, {4, 1}}};
    const auto format = formats.find(resource->format);
    if (resource->kind != ROWS || resource->channels != 1 || format == formats.end() ||
        sampling->filter != POINT || sampling->flags != AS_INTEGERS || sampling->address[0] != CLAMP ||
        sampling->address[1] != CLAMP) {
        d.complain("a texture was made of a kind that the stand-in does not know");
        return INVALID_VALUE;
    }
    const size_t row = resource->width * format->second.first;
    if (resource->begin % 512 != 0 || resource->pitch % 32 != 0 || resource->width > 131072 ||
        resource->height > 65000 || resource->pitch > 2097120 || !resource->width || !resource->height ||
        row > resource->pitch) {
        return INVALID_VALUE;
    }
    if (!is_valid(End{true, resource->begin, resource->pitch}, row, resource->height)) {
        d.complain("a texture leaves its block of the card's memory");
        return INVALID_VALUE;
    }
    auto *texture = new Texture{(const unsigned char *)resource->begin,
                                resource->width,
                                resource->height,
                                resource->pitch,
                                format->second.first,
                                format->second.second,
                                1};
    d.textures.insert(texture);
    *object = (uint64_t)texture;
    return SUCCESS;
}

// What it was stays where it was, so that a kernel that uses it yet is found out.
int cuTexObjectDestroy(uint64_t object)
{
    BEGIN("cuTexObjectDestroy", Manner::BESIDES);
    auto *texture = (Texture *)object;
    if (d.textures.count(texture) == 0 || !texture->live) return INVALID_VALUE;
    texture->live = 0;
    return call.give();
}

// --- graphs ------------------------------------------------------------------------------------------------

int cuStreamBeginCapture_v2(StreamHandle *stream, int)
{
    BEGIN("cuStreamBeginCapture_v2");
    if (!d.streams.has(stream)) return INVALID_HANDLE;
    if (stream->stream->capture) return CAPTURE_UNSUPPORTED;
    stream->stream->capture = std::make_shared<Graph>();
    ++capturing;
    return SUCCESS;
}

int cuStreamEndCapture(StreamHandle *stream, GraphHandle **graph)
{
    BEGIN("cuStreamEndCapture", Manner::BESIDES);
    if (!d.streams.has(stream)) return INVALID_HANDLE;
    if (!stream->stream->capture) return CAPTURE_UNMATCHED;
    const shared_ptr<Graph> captured = std::move(stream->stream->capture);
    stream->stream->capture = nullptr;
    --capturing;
    *graph = call.give() == SUCCESS ? d.graphs.add(new GraphHandle{captured}) : nullptr;
    return call.give();
}

int cuGraphInstantiateWithFlags(GraphHandle **executable, GraphHandle *graph, unsigned long long)
{
    BEGIN("cuGraphInstantiateWithFlags");
    if (!d.graphs.has(graph)) return INVALID_HANDLE;
    *executable = d.graphs.add(new GraphHandle{graph->graph});
    return SUCCESS;
}

// What was launched before goes on as it was.
int cuGraphExecUpdate_v2(GraphHandle *executable, GraphHandle *graph, void *)
{
    BEGIN("cuGraphExecUpdate_v2");
    if (!d.graphs.has(executable) || !d.graphs.has(graph)) return INVALID_HANDLE;
    if (executable->graph->size() != graph->graph->size()) return GRAPH_EXEC_UPDATE_FAILURE;
    executable->graph = graph->graph;
    return SUCCESS;
}

int cuGraphLaunch(GraphHandle *executable, StreamHandle *stream)
{
    BEGIN("cuGraphLaunch");
    const shared_ptr<Stream> what = stream_of(stream);
    if (!what || !d.graphs.has(executable)) return INVALID_HANDLE;
    Operation operation;
    operation.graph = executable->graph;
    d.queues.enqueue(call.held, what, std::move(operation));
    return call.give();
}

int cuGraphDestroy(GraphHandle *graph)
{
    BEGIN("cuGraphDestroy", Manner::BESIDES);
    return call.give(d.graphs.remove(graph) ? SUCCESS : INVALID_HANDLE);
}

int cuGraphExecDestroy(GraphHandle *executable)
{
    BEGIN("cuGraphExecDestroy", Manner::BESIDES);
    return call.give(d.graphs.remove(executable) ? SUCCESS : INVALID_HANDLE);
}

// --- what FFmpeg calls -------------------------------------------------------------------------------------

int cuDeviceComputeCapability(int *major, int *minor, int)
{
    BEGIN("cuDeviceComputeCapability", Manner::INSTEAD, false);
    *major = (int)d.card.capability / 10;
    *minor = (int)d.card.capability % 10;
    return SUCCESS;
}

// The contexts below the current one of this thread.
static thread_local std::vector<Context *> below;

int cuCtxPushCurrent_v2(Context *context)
{
    BEGIN("cuCtxPushCurrent_v2", Manner::INSTEAD, false);
    if (!context || context->retained == 0) return INVALID_CONTEXT;
    below.push_back(bound);
    bound = context;
    return SUCCESS;
}

int cuCtxPopCurrent_v2(Context **context)
{
    BEGIN("cuCtxPopCurrent_v2", Manner::BESIDES, false);
    if (below.empty()) return INVALID_CONTEXT;
    if (context) *context = bound;
    bound = below.back();
    below.pop_back();
    return call.give();
}

int cuCtxCreate_v2(Context **context, unsigned, int device)
{
    BEGIN("cuCtxCreate_v2", Manner::INSTEAD, false);
    if (device < 0 || device >= d.cards) return INVALID_DEVICE;
    *context = d.others.add(new Context{device, 1, nullptr});
    below.push_back(bound);
    bound = *context;
    return SUCCESS;
}

int cuCtxDestroy_v2(Context *context)
{
    BEGIN("cuCtxDestroy_v2", Manner::BESIDES, false);
    if (!d.others.has(context)) return INVALID_CONTEXT;
    if (bound == context) bound = nullptr;
    d.others.remove(context);
    return call.give();
}

int cuCtxGetDevice(int *device)
{
    BEGIN("cuCtxGetDevice");
    *device = bound->card;
    return SUCCESS;
}

// FFmpeg uses a driver only if all of these are there. It never calls them here.
#define ABSENT(name)                                                        \
    int name()                                                              \
    {                                                                       \
        constexpr int NOT_SUPPORTED = 801;                                  \
        BEGIN(#name, Manner::INSTEAD, false);                               \
        d.complain(#name " was called, which the stand-in does not know");  \
        return NOT_SUPPORTED;                                               \
    }

ABSENT(cuArray3DCreate_v2)
ABSENT(cuArrayDestroy)
ABSENT(cuCtxSetLimit)
ABSENT(cuDevicePrimaryCtxGetState)
ABSENT(cuDevicePrimaryCtxRelease)
ABSENT(cuDevicePrimaryCtxReset)
ABSENT(cuDevicePrimaryCtxSetFlags)
ABSENT(cuEGLStreamConsumerDisconnect)
ABSENT(cuEGLStreamProducerConnect)
ABSENT(cuEGLStreamProducerDisconnect)
ABSENT(cuEGLStreamProducerPresentFrame)
ABSENT(cuEGLStreamProducerReturnFrame)
ABSENT(cuEventSynchronize)
ABSENT(cuGLGetDevices_v2)
ABSENT(cuGraphicsGLRegisterImage)
ABSENT(cuGraphicsMapResources)
ABSENT(cuGraphicsResourceGetMappedPointer_v2)
ABSENT(cuGraphicsSubResourceGetMappedArray)
ABSENT(cuGraphicsUnmapResources)
ABSENT(cuGraphicsUnregisterResource)
ABSENT(cuLinkAddData)
ABSENT(cuLinkComplete)
ABSENT(cuLinkCreate)
ABSENT(cuLinkDestroy)
ABSENT(cuMemAllocManaged)
ABSENT(cuMemAllocPitch_v2)
ABSENT(cuMemcpy)
ABSENT(cuMemcpy2D_v2)
ABSENT(cuMemcpyAsync)
ABSENT(cuMemcpyDtoD_v2)
ABSENT(cuModuleGetGlobal)
ABSENT(cuStreamAddCallback)
ABSENT(cuStreamQuery)
}
