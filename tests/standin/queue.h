// Streams and events. Nothing enqueued runs by itself: it runs when the host asks or waits, one piece at a
// time, in any order that streams and events allow.
#pragma once

#include "block.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace standin {

// How a piece of work ended; a code of 0 means well.
struct Outcome {
    int code = 0;
    std::string why;
};

using Work = std::function<Outcome()>;

// What an event recorded: whether it has happened, and when.
struct Moment {
    bool done = false;
    double at = 0;
};

// Work that is known as a whole.
using Graph = std::vector<Work>;

struct Operation {
    Work work;
    std::shared_ptr<Moment> marks;      // happens here
    std::shared_ptr<Moment> waits_for;  // has to have happened
    std::shared_ptr<const Graph> graph;
    size_t next = 0;      // piece of the graph
    double enqueued = 0;  // when the host did
    uint64_t serial = 0;  // among all that was enqueued
};

struct Stream {
    int number = 0;  // in the order in which they were made
    std::deque<Operation> queue;
    bool is_running = false;
    // When what was done last ended, had every stream a card's engine to itself.
    double time = 0;
    std::shared_ptr<Graph> capture;
    // What the card's memory held before the last launch that waited for all earlier ones, once that has
    // begun.
    std::shared_ptr<Past> before;
};

// All streams of all cards. Whoever calls holds `lock`, which is let go while work runs.
class Queues {
public:
    std::mutex lock;
    // The error that work broke down with. As on a card, nothing works any more then.
    Outcome broken;

    explicit Queues(uint64_t seed);
    // Chooses, and numbers streams, from now on as a new one with this seed does.
    void begin(uint64_t seed);
    std::shared_ptr<Stream> make();
    // What is still in it will be done yet.
    void forget(const std::shared_ptr<Stream> &stream);
    void enqueue(std::unique_lock<std::mutex> &held, const std::shared_ptr<Stream> &stream,
                 Operation operation);
    // Lets something be done, if anything can be.
    bool step(std::unique_lock<std::mutex> &held);
    // Returns when what the stream holds now is done; for null, what all of them hold.
    void finish(std::unique_lock<std::mutex> &held, const Stream *stream);
    // True for some calls of many: whether the host meets work done early or late.
    bool perhaps(unsigned in) { return random.below(in) == 0; }
    Random random;
    double now() const;

private:
    std::vector<std::shared_ptr<Stream>> streams;
    std::condition_variable changed;
    // How the next stream is chosen, for a while.
    unsigned mood = 0, patience = 0, eagerness = 0;
    Stream *last = nullptr;
    int count = 0;
    uint64_t serial = 0;

    std::shared_ptr<Stream> choose();
    void run(std::unique_lock<std::mutex> &held, const std::shared_ptr<Stream> &stream);
};

}  // namespace standin
