#include "queue.h"

#include <algorithm>
#include <chrono>

namespace standin {
namespace {

constexpr int LAUNCH_FAILED = 719;

}  // namespace

Queues::Queues(uint64_t seed) : random{0}
{
    begin(seed);
}

void Queues::begin(uint64_t seed)
{
    random = Random{seed * 0x5851f42d4c957f2d + 1};
    mood = patience = 0;
    count = 0;
    // From a card that has done all before the host looks to one that does nothing until it must.
    constexpr unsigned EAGERNESS[] = {0, 1, 2, 8};
    eagerness = EAGERNESS[seed % 4];
}

double Queues::now() const
{
    static const auto began = std::chrono::steady_clock::now();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

std::shared_ptr<Stream> Queues::make()
{
    auto stream = std::make_shared<Stream>();
    stream->number = count++;
    stream->time = now();
    streams.push_back(stream);
    return stream;
}

void Queues::forget(const std::shared_ptr<Stream> &stream)
{
    if (stream->queue.empty()) streams.erase(std::find(streams.begin(), streams.end(), stream));
    // Else it goes when it is empty, which `run` sees.
    stream->number = -1;
}

void Queues::enqueue(std::unique_lock<std::mutex> &held, const std::shared_ptr<Stream> &stream,
                     Operation operation)
{
    operation.enqueued = now();
    operation.serial = ++serial;
    stream->queue.push_back(std::move(operation));
    if (eagerness != 0 && perhaps(eagerness)) step(held);
}

std::shared_ptr<Stream> Queues::choose()
{
    std::vector<std::shared_ptr<Stream>> able;
    for (const auto &stream : streams) {
        if (stream->is_running || stream->queue.empty()) continue;
        const Operation &head = stream->queue.front();
        if (!head.waits_for || head.waits_for->done || broken.code != 0) able.push_back(stream);
    }
    if (able.empty()) return nullptr;
    if (patience-- == 0) {
        patience = 1 + random.below(40);
        mood = random.below(4);
    }
    switch (mood) {
    case 0: return able.front();
    case 1: return able.back();
    case 2:
        // As far as it goes.
        for (const auto &stream : able) {
            if (stream.get() == last) return stream;
        }
        [[fallthrough]];
    default: return able[random.below(able.size())];
    }
}

bool Queues::step(std::unique_lock<std::mutex> &held)
{
    const std::shared_ptr<Stream> stream = choose();
    if (!stream) return false;
    last = stream.get();
    run(held, stream);
    return true;
}

void Queues::run(std::unique_lock<std::mutex> &held, const std::shared_ptr<Stream> &stream)
{
    Operation &head = stream->queue.front();
    double begin = std::max(stream->time, head.enqueued);
    if (head.waits_for) begin = std::max(begin, head.waits_for->at);
    double took = 0;
    const Work *work = head.graph  ? (head.next < head.graph->size() ? &(*head.graph)[head.next] : nullptr)
                       : head.work ? &head.work
                                   : nullptr;
    if (work && broken.code == 0) {
        stream->is_running = true;
        held.unlock();
        const double began = now();
        Outcome outcome = (*work)();
        took = now() - began;
        held.lock();
        stream->is_running = false;
        if (outcome.code != 0 && broken.code == 0) broken = std::move(outcome);
    }
    stream->time = begin + took;
    changed.notify_all();
    if (head.graph && ++head.next < head.graph->size()) return;
    if (head.marks) {
        head.marks->at = stream->time;
        head.marks->done = true;
    }
    stream->queue.pop_front();
    if (stream->number < 0 && stream->queue.empty())
        streams.erase(std::find(streams.begin(), streams.end(), stream));
}

void Queues::finish(std::unique_lock<std::mutex> &held, const Stream *stream)
{
    // What is enqueued meanwhile is not waited for.
    const uint64_t last_one = serial;
    const auto is_done = [&](const Stream &s) {
        return s.queue.empty() || s.queue.front().serial > last_one;
    };
    const auto all_done = [&] {
        if (stream) return is_done(*stream);
        return std::all_of(streams.begin(), streams.end(), [&](const auto &s) { return is_done(*s); });
    };
    while (!all_done()) {
        if (step(held)) continue;
        // What cannot go on waits for work that another thread of the host's is doing.
        if (std::none_of(streams.begin(), streams.end(), [](const auto &s) { return s->is_running; })) {
            broken = {LAUNCH_FAILED, "streams wait for each other, and none can go on"};
        } else {
            changed.wait(held);
        }
    }
}

}  // namespace standin
