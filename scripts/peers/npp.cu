// Times NPP's filters on a card, for gpu.py. It reads one job a line, words of key=value separated by tabs,
// and answers each with one line of JSON: the milliseconds of a frame, and what it was timed with.
//
//     function=filter32f|filter8u|gauss|filter of float|gauss of float
//     width=1920  height=1080  channels=1|3  taps=7  reverse=0|1
//     weights=FILE (floats: taps x taps, taps for gauss; 32-bit integers for filter8u)  divisor=16
//     input=FILE  output=FILE  seconds=0.2
//
// Built with: nvcc -O3 -o npp npp.cu -lnppif -lnppc
#include <cuda_runtime.h>
#include <npp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

static void check(cudaError_t result, const char *doing) {
    if (result != cudaSuccess)
        throw std::runtime_error(std::string(doing) + ": " + cudaGetErrorString(result));
}

using Job = std::map<std::string, std::string>;

static std::vector<char> read(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error("cannot read " + path);
    return {std::istreambuf_iterator<char>(file), {}};
}

static NppStreamContext context(cudaStream_t stream) {
    NppStreamContext c = {};
    cudaDeviceProp facts;
    check(cudaGetDevice(&c.nCudaDeviceId), "asking for the device");
    check(cudaGetDeviceProperties(&facts, c.nCudaDeviceId), "asking for the device's properties");
    c.hStream = stream;
    c.nMultiProcessorCount = facts.multiProcessorCount;
    c.nMaxThreadsPerMultiProcessor = facts.maxThreadsPerMultiProcessor;
    c.nMaxThreadsPerBlock = facts.maxThreadsPerBlock;
    c.nSharedMemPerBlock = facts.sharedMemPerBlock;
    c.nCudaDevAttrComputeCapabilityMajor = facts.major;
    c.nCudaDevAttrComputeCapabilityMinor = facts.minor;
    check(cudaStreamGetFlags(stream, &c.nStreamFlags), "asking for the stream's flags");
    return c;
}

// Memory of the card, given back when the job ends.
struct Block {
    Npp8u *at = nullptr;
    explicit Block(size_t bytes)
    {
        check(cudaMalloc(reinterpret_cast<void **>(&at), bytes), "allocating on the card");
    }
    Block(const Block &) = delete;
    Block(Block &&other) noexcept : at(other.at) { other.at = nullptr; }
    ~Block() { cudaFree(at); }
};

// Pictures and results that take turns: together four times the level-2 cache.
struct Pictures {
    std::vector<Block> from, to;

    // `first` is the one whose result is looked at; the others are noise.
    Pictures(const std::vector<char> &first, size_t row, size_t pitch, size_t height, bool is_float)
    {
        const size_t bytes = pitch * height;
        cudaDeviceProp facts;
        check(cudaGetDeviceProperties(&facts, 0), "asking for the device's properties");
        const size_t wanted = 4 * size_t(facts.l2CacheSize) / (2 * bytes) + 1;
        const size_t turns = std::clamp<size_t>(wanted, 3, 2048);
        std::mt19937 random(std::random_device{}());
        std::vector<unsigned> noise((bytes + 3) / 4);
        for (size_t turn = 0; turn < turns; ++turn) {
            from.emplace_back(bytes);
            to.emplace_back(bytes);
            if (turn == 0) {
                check(cudaMemcpy2D(from[0].at, pitch, first.data(), row, row, height, cudaMemcpyHostToDevice),
                      "uploading");
            } else {
                for (auto &word : noise) {
                    word = random();
                    // From 1 to 2.
                    if (is_float) word = 0x3f800000 | word >> 9;
                }
                check(cudaMemcpy(from[turn].at, noise.data(), bytes, cudaMemcpyHostToDevice), "uploading");
            }
            check(cudaMemset(to[turn].at, 0xA5, bytes), "spoiling old results");
        }
    }
};

// One of NPP's filters, enqueued on a stream.
struct Filter {
    std::string function;
    int channels, taps, step;
    NppiSize size;
    Npp32s divisor;
    const Npp8u *mask;
    NppStreamContext ctx;

    void operator()(const Npp8u *source, Npp8u *result) const
    {
        const NppiSize side = {taps, taps};
        const NppiPoint none = {0, 0}, anchor = {taps / 2, taps / 2};
        const auto *real = reinterpret_cast<const Npp32f *>(mask);
        const auto *whole = reinterpret_cast<const Npp32s *>(mask);
        NppStatus status;
        if (function == "filter32f")
            status = (channels == 1 ? nppiFilterBorder32f_8u_C1R_Ctx : nppiFilterBorder32f_8u_C3R_Ctx)(
                source, step, size, none, result, step, size, real, side, anchor, NPP_BORDER_REPLICATE, ctx);
        else if (function == "filter8u")
            status = (channels == 1 ? nppiFilterBorder_8u_C1R_Ctx : nppiFilterBorder_8u_C3R_Ctx)(
                source, step, size, none, result, step, size, whole, side, anchor, divisor,
                NPP_BORDER_REPLICATE, ctx);
        else if (function == "filter of float")
            status = (channels == 1 ? nppiFilterBorder_32f_C1R_Ctx : nppiFilterBorder_32f_C3R_Ctx)(
                reinterpret_cast<const Npp32f *>(source), step, size, none,
                reinterpret_cast<Npp32f *>(result), step, size, real, side, anchor, NPP_BORDER_REPLICATE,
                ctx);
        else if (function == "gauss of float")
            status = (channels == 1 ? nppiFilterGaussAdvancedBorder_32f_C1R_Ctx
                                    : nppiFilterGaussAdvancedBorder_32f_C3R_Ctx)(
                reinterpret_cast<const Npp32f *>(source), step, size, none,
                reinterpret_cast<Npp32f *>(result), step, size, taps, real, NPP_BORDER_REPLICATE, ctx);
        else
            status = (channels == 1 ? nppiFilterGaussAdvancedBorder_8u_C1R_Ctx
                                    : nppiFilterGaussAdvancedBorder_8u_C3R_Ctx)(
                source, step, size, none, result, step, size, taps, real, NPP_BORDER_REPLICATE, ctx);
        if (status != NPP_SUCCESS) throw std::runtime_error("NPP answers " + std::to_string(status));
    }
};

// Times turns of a filter: one graph of them all, or the calls themselves where NPP cannot be captured.
struct Timer {
    cudaStream_t stream;
    std::function<void(size_t)> frame;
    size_t turns, passes = 1;
    cudaGraphExec_t exec = nullptr;

    Timer(cudaStream_t stream, std::function<void(size_t)> frame, size_t turns)
        : stream(stream), frame(std::move(frame)), turns(turns)
    {
    }
    Timer(const Timer &) = delete;
    ~Timer()
    {
        if (exec) cudaGraphExecDestroy(exec);
    }

    void capture()
    {
        cudaGraph_t graph = nullptr;
        if (exec) cudaGraphExecDestroy(exec);
        exec = nullptr;
        if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) != cudaSuccess) return;
        bool whole_pass = true;
        try {
            for (size_t index = 0; index < passes * turns; ++index) frame(index % turns);
        } catch (const std::exception &) {
            whole_pass = false;
        }
        const bool ended = cudaStreamEndCapture(stream, &graph) == cudaSuccess;
        if (!(whole_pass && ended && cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess)) exec = nullptr;
        if (graph) cudaGraphDestroy(graph);
        cudaGetLastError();
    }

    void once()
    {
        if (exec) return check(cudaGraphLaunch(exec, stream), "launching the graph");
        for (size_t index = 0; index < passes * turns; ++index) frame(index % turns);
    }

    // Milliseconds of each round.
    std::vector<double> timed(int rounds)
    {
        std::vector<cudaEvent_t> marks(rounds + 1);
        for (auto &mark : marks) check(cudaEventCreate(&mark), "making an event");
        check(cudaEventRecord(marks[0], stream), "recording an event");
        for (int round = 0; round < rounds; ++round) {
            once();
            check(cudaEventRecord(marks[round + 1], stream), "recording an event");
        }
        check(cudaStreamSynchronize(stream), "running the filter");
        std::vector<double> times;
        for (int round = 0; round < rounds; ++round) {
            float milliseconds = 0;
            check(cudaEventElapsedTime(&milliseconds, marks[round], marks[round + 1]), "reading the clock");
            times.push_back(milliseconds);
        }
        for (auto &mark : marks) cudaEventDestroy(mark);
        return times;
    }

    // Milliseconds of a frame, in order, of rounds of two milliseconds at least that take some `seconds`.
    std::vector<double> frames(double seconds)
    {
        capture();
        once();
        double length = timed(1)[0];
        passes = std::clamp<size_t>(size_t(2.0 / std::max(length, 1e-4)) + 1, 1,
                                    std::max<size_t>(8192 / turns, 1));
        if (passes > 1) {
            capture();
            once();
            length = timed(1)[0];
        }
        timed(std::clamp(int(30.0 / length), 1, 1000));
        std::vector<double> times = timed(std::clamp(int(seconds * 1e3 / length), 9, 300));
        for (auto &time : times) time /= double(passes * turns);
        std::sort(times.begin(), times.end());
        return times;
    }
};

static std::string run(Job job) {
    const int width = std::stoi(job.at("width")), height = std::stoi(job.at("height"));
    const int channels = std::stoi(job.at("channels")), taps = std::stoi(job.at("taps"));
    const std::string function = job.at("function");
    const bool is_float = function == "filter of float" || function == "gauss of float";
    const size_t row = size_t(width) * channels * (is_float ? sizeof(float) : 1);
    // Rows lie as framepipe's do: aligned to 64 bytes.
    const size_t pitch = (row + 63) / 64 * 64;

    std::vector<char> picture = read(job.at("input")), weights = read(job.at("weights"));
    if (picture.size() != row * height) throw std::runtime_error("the picture has another size");
    if (job.at("reverse") == "1") {
        // Four bytes a weight, whatever they are.
        auto *begin = reinterpret_cast<int *>(weights.data());
        std::reverse(begin, begin + weights.size() / 4);
    }
    Block mask(weights.size());
    check(cudaMemcpy(mask.at, weights.data(), weights.size(), cudaMemcpyHostToDevice),
          "uploading the weights");
    const Pictures pictures(picture, row, pitch, height, is_float);
    const size_t turns = pictures.from.size();

    cudaStream_t stream;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
    const Npp32s divisor = std::stoi(job.at("divisor"));
    const Filter filter = {function, channels, taps, int(pitch), {width, height},
                           divisor,  mask.at,  context(stream)};
    auto frame = [&](size_t turn) { filter(pictures.from[turn].at, pictures.to[turn].at); };
    for (size_t turn = 0; turn < turns; ++turn) frame(turn);
    check(cudaStreamSynchronize(stream), "running the filter");
    std::vector<char> made(row * height);
    check(cudaMemcpy2D(made.data(), row, pictures.to[0].at, pitch, row, height, cudaMemcpyDeviceToHost),
          "downloading");
    std::ofstream(job.at("output"), std::ios::binary).write(made.data(), made.size());

    std::ostringstream answer;
    {
        Timer timer(stream, frame, turns);
        const std::vector<double> times = timer.frames(std::stod(job.at("seconds")));
        answer << "{\"median\": " << times[times.size() / 2] << ", \"min\": " << times.front()
               << ", \"p90\": " << times[(times.size() * 9 + 9) / 10 - 1]
               << ", \"count\": " << times.size()
               << ", \"frames_in_turn\": " << turns << ", \"timed_by\": \""
               << (timer.exec ? "graph" : "events") << "\"}";
    }
    cudaStreamDestroy(stream);
    return answer.str();
}

int main() {
    std::string line;
    while (std::getline(std::cin, line)) {
        Job job;
        std::istringstream words(line);
        for (std::string word; std::getline(words, word, '\t');) {
            const size_t at = word.find('=');
            if (at != std::string::npos) job[word.substr(0, at)] = word.substr(at + 1);
        }
        try {
            std::cout << run(job) << std::endl;
        } catch (const std::exception &error) {
            cudaGetLastError();
            std::string text = error.what();
            std::replace(text.begin(), text.end(), '"', '\'');
            std::cout << "{\"error\": \"" << text << "\"}" << std::endl;
        }
    }
}
