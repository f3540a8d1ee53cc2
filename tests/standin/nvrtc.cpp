// NVRTC's entry points: kernel texts are compiled for this machine's processor, by the C++ compiler that
// STANDIN_COMPILER names.
//
//   FRAMEPIPE_STANDIN_CACHE  a folder in which compiled texts are kept by their content
//   FRAMEPIPE_STANDIN_ALTER  FROM=>TO: replaces a part of every text, to see that another kernel is noticed

#include "image.h"
#include "settings.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <regex>
#include <spawn.h>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using standin::setting;
using std::string;

namespace {

enum Result {
    SUCCESS = 0,
    INVALID_INPUT = 3,
    INVALID_PROGRAM = 4,
    INVALID_OPTION = 5,
    COMPILATION = 6,
    INTERNAL_ERROR = 11
};

constexpr int ARCHITECTURES[] = {75, 80, 86, 89, 90, 100, 120};

struct Text {
    string name, text;
};

struct Program {
    Text main;
    std::vector<Text> headers;
    string log;
    string image;
};

string read_file(const string &path)
{
    std::ifstream file(path, std::ios::binary);
    std::ostringstream all;
    all << file.rdbuf();
    return file ? all.str() : string();
}

string replace_all(string text, const string &from, const string &to)
{
    for (size_t at = 0; (at = text.find(from, at)) != string::npos; at += to.size())
        text.replace(at, from.size(), to);
    return text;
}

// A text as the compiler is to see it. Dynamic shared memory becomes a pointer. Loops stay loops: unrolling
// them takes most of the time.
string rewrite(string text)
{
    const string alter = setting("ALTER");
    if (const size_t at = alter.find("=>"); at != string::npos)
        text = replace_all(text, alter.substr(0, at), alter.substr(at + 2));
    static const std::regex dynamic(
        R"(extern\s+__shared__\s+(?:__align__\(\d+\)\s+)?(\w+)\s+(\w+)\s*\[\s*\]\s*;)");
    text = std::regex_replace(text, dynamic, "$1 *const $2 = ($1 *)standin::state.shared;");
    static const std::regex unroll(R"(#pragma unroll[^\n]*)");
    return std::regex_replace(text, unroll, "");
}

// Where a bracket that opens at `at` is closed.
size_t closing(const string &text, size_t at)
{
    int depth = 0;
    for (; at < text.size(); ++at) {
        depth += text[at] == '(';
        depth -= text[at] == ')';
        if (depth == 0) return at;
    }
    return text.size();
}

// The entries of the module's table: each kernel with its launch bounds.
string table(const string &text)
{
    string entries;
    static const std::regex head(R"(__global__\s+void\s+)");
    for (std::sregex_iterator found(text.begin(), text.end(), head), end; found != end; ++found) {
        size_t at = found->position() + found->length();
        string bounds;
        const string word = "__launch_bounds__(";
        if (text.compare(at, word.size(), word) == 0) {
            const size_t close = closing(text, at + word.size() - 1);
            bounds = ", " + text.substr(at + word.size(), close - at - word.size());
            at = text.find_first_not_of(" \n", close + 1);
        }
        const string name = text.substr(at, text.find('(', at) - at);
        entries += "Entry<&" + name + ">::describe(\"" + name + "\"" + bounds + "),\n";
    }
    return entries;
}

// The kernels of a text, and the one of those that it includes: of several, the one whose number LOADER is.
string entries(const Program &program, const string &text, int loader)
{
    string all = text;
    for (const Text &header : program.headers) {
        if (text.find("#include \"" + header.name + '"') == string::npos) continue;
        static const std::regex part(R"(#(?:if|elif|else)[^\n]*\n(extern "C" __global__[^#]*))");
        std::sregex_iterator found(header.text.begin(), header.text.end(), part);
        for (int k = 0; found != std::sregex_iterator(); ++found, ++k) {
            if (k == loader) all += (*found)[1];
        }
    }
    return table(all);
}

string whole_text(const Program &program, int loader)
{
    const string text = rewrite(program.main.text);
    return text +
           "\nnamespace standin {\nState state;\n"
           "extern \"C\" __attribute__((weak, visibility(\"hidden\"))) unsigned char "
           "__start_standin_shared[], __stop_standin_shared[];\n"
           "static const Kernel kernels[] = {\n" +
           entries(program, text, loader) +
           "};\n"
           "static struct Begin { Begin() { state.static_begin = __start_standin_shared; state.static_end = "
           "__stop_standin_shared; } } begin;\n"
           "}\n"
           "extern \"C\" __attribute__((visibility(\"default\"))) const standin::Description standin_module "
           "= {\n"
           "    &standin::state, standin::kernels, sizeof standin::kernels / sizeof *standin::kernels};\n";
}

// Runs a command; `said` is what it wrote.
bool run(const std::vector<string> &words, const string &log, string &said)
{
    std::vector<char *> arguments, environment;
    for (const string &word : words) arguments.push_back(const_cast<char *>(word.c_str()));
    // The folder of the stand-ins is nothing to the compiler.
    for (char **entry = environ; *entry; ++entry) {
        if (strncmp(*entry, "LD_LIBRARY_PATH=", 16) != 0) environment.push_back(*entry);
    }
    arguments.push_back(nullptr);
    environment.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&files, 1, 2);
    pid_t child = 0;
    const bool begun =
        posix_spawnp(&child, arguments[0], &files, nullptr, arguments.data(), environment.data()) == 0;
    posix_spawn_file_actions_destroy(&files);
    int status = -1;
    while (begun && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    said = read_file(log);
    return begun && status == 0;
}

string hash(const string &text)
{
    unsigned __int128 h = ((unsigned __int128)0x6c62272e07bb0142 << 64) | 0x62b821756295c58d;
    const unsigned __int128 prime = ((unsigned __int128)0x0000000001000000 << 64) | 0x000000000000013b;
    for (unsigned char c : text) h = (h ^ c) * prime;
    char digits[33];
    snprintf(digits, sizeof digits, "%016llx%016llx", (unsigned long long)(h >> 64), (unsigned long long)h);
    return digits;
}

// Compiles a text to a shared library for cards of this architecture.
Result compile(Program &program, unsigned architecture, const std::vector<string> &defines, string &library)
{
    // What a card would pass over or stumble upon ends the kernel. Overflow is none where sums of rows that
    // were not loaded, which nobody needs, are made of anything, and where arithmetic is done for its own
    // sake. Without optimisation, since most kernels run for less time than they take to compile.
    const string &name = program.main.name;
    const bool is_peak = name == "timing/peak.cu",
               wraps = is_peak || name.compare(0, 7, "tensor/") == 0;
    std::vector<string> words = {STANDIN_COMPILER,
                                 "-x",
                                 "c++",
                                 "-std=c++17",
                                 "-O0",
                                 "-w",
                                 "-shared",
                                 "-fPIC",
                                 "-fvisibility=hidden",
                                 "-fno-exceptions",
                                 "-fno-rtti",
                                 "-fno-strict-aliasing",
                                 // Every rounding that the text states, and no other.
                                 "-ffp-contract=off",
                                 "-fno-threadsafe-statics",
                                 "-nostdlib",
                                 "-include",
                                 "kernel.h",
                                 "-I.",
                                 "-I" STANDIN_FOLDER,
                                 "-DSTANDIN_WRAPS=" + string(is_peak ? "standin::WRAPS" : "0")};
    words.push_back(wraps ? "-fwrapv" : "-fsanitize=signed-integer-overflow");
    words.insert(words.end(), {"-fsanitize=alignment,bounds", "-fsanitize-trap=all"});
    words.insert(words.end(), defines.begin(), defines.end());
    int loader = -1;
    for (const string &define : defines) sscanf(define.c_str(), "-DLOADER=%d", &loader);
    std::vector<Text> files = {{"main.cpp", whole_text(program, loader)}};
    for (const Text &header : program.headers) {
        const bool is_ptx = header.name == "common/platform/ptx.cuh";
        files.push_back({header.name, is_ptx ? read_file(STANDIN_FOLDER "/ptx.cuh") : rewrite(header.text)});
    }
    // Where no text asks for the architecture, cards of every generation share what is compiled.
    const auto asks = [](const Text &file) { return file.text.find("__CUDA_ARCH__") != string::npos; };
    if (std::any_of(files.begin(), files.end(), asks))
        words.push_back("-D__CUDA_ARCH__=" + std::to_string(architecture * 10));
    string all;
    for (const string &word : words) all += word + '\n';
    for (const Text &file : files) all += file.name + '\n' + file.text + '\0';
    for (const char *name : {"lane.h", "kernel.h"})
        all += read_file(string(STANDIN_FOLDER "/") + name) + '\0';
    const string cache = setting("CACHE");
    const string kept = cache.empty() ? string() : cache + '/' + hash(all) + ".so";
    if (!kept.empty() && !(library = read_file(kept)).empty()) return SUCCESS;

    string folder = setting("CACHE", "/tmp") + "/text.XXXXXX";
    if (!mkdtemp(folder.data())) {
        program.log = "the stand-in cannot make a folder in " + setting("CACHE", "/tmp");
        return INTERNAL_ERROR;
    }
    std::error_code ignored;
    for (const Text &file : files) {
        const std::filesystem::path path = folder + '/' + file.name;
        std::filesystem::create_directories(path.parent_path(), ignored);
        std::ofstream(path, std::ios::binary) << file.text;
    }
    for (string &word : words) {
        if (word == "-I.") word = "-I" + folder;
    }
    words.insert(words.end(), {"-o", folder + "/text.so", folder + "/main.cpp"});
    const bool ok = run(words, folder + "/log", program.log);
    if (ok) library = read_file(folder + "/text.so");
    // Under a name of its own first, so that no other process reads half of it.
    if (ok && !kept.empty()) rename((folder + "/text.so").c_str(), kept.c_str());
    std::filesystem::remove_all(folder, ignored);
    if (!ok && program.log.empty()) program.log = "the stand-in cannot run " STANDIN_COMPILER;
    return ok && !library.empty() ? SUCCESS : COMPILATION;
}

Result give(const string &bytes, char *to)
{
    if (bytes.empty()) return INVALID_PROGRAM;
    memcpy(to, bytes.data(), bytes.size());
    return SUCCESS;
}

}  // namespace

extern "C" {

Result nvrtcVersion(int *major, int *minor)
{
    *major = 13;
    *minor = 0;
    return SUCCESS;
}

const char *nvrtcGetErrorString(Result result)
{
    switch (result) {
    case SUCCESS: return "NVRTC_SUCCESS";
    case INVALID_INPUT: return "NVRTC_ERROR_INVALID_INPUT";
    case INVALID_PROGRAM: return "NVRTC_ERROR_INVALID_PROGRAM";
    case INVALID_OPTION: return "NVRTC_ERROR_INVALID_OPTION";
    case COMPILATION: return "NVRTC_ERROR_COMPILATION";
    default: return "NVRTC_ERROR_INTERNAL_ERROR";
    }
}

Result nvrtcGetNumSupportedArchs(int *count)
{
    *count = sizeof ARCHITECTURES / sizeof *ARCHITECTURES;
    return SUCCESS;
}

Result nvrtcGetSupportedArchs(int *list)
{
    memcpy(list, ARCHITECTURES, sizeof ARCHITECTURES);
    return SUCCESS;
}

Result nvrtcCreateProgram(Program **program, const char *text, const char *name, int count,
                          const char *const *headers, const char *const *names)
{
    if (!program || !text || count < 0) return INVALID_INPUT;
    *program = new Program{{name ? name : "default_program", text}, {}, {}, {}};
    for (int k = 0; k < count; ++k) (*program)->headers.push_back({names[k], headers[k]});
    return SUCCESS;
}

Result nvrtcDestroyProgram(Program **program)
{
    if (!program || !*program) return INVALID_PROGRAM;
    delete *program;
    *program = nullptr;
    return SUCCESS;
}

Result nvrtcCompileProgram(Program *program, int count, const char *const *options)
{
    if (!program) return INVALID_PROGRAM;
    standin::ImageHead head = {};
    std::vector<string> defines;
    for (int k = 0; k < count; ++k) {
        const string option = options[k];
        unsigned number = 0;
        if (option.compare(0, 2, "-D") == 0) {
            defines.push_back(option);
        } else if (sscanf(options[k], "--gpu-architecture=sm_%u", &number) == 1) {
            head.architecture = number;
        } else if (sscanf(options[k], "--gpu-architecture=compute_%u", &number) == 1) {
            head.architecture = number;
            head.is_portable = 1;
        } else if (option != "--std=c++17") {
            program->log = "the stand-in does not know the option " + option;
            return INVALID_OPTION;
        }
    }
    string library;
    const Result result = compile(*program, head.architecture, defines, library);
    if (result == SUCCESS) {
        memcpy(head.magic, standin::MAGIC, sizeof head.magic);
        head.bytes = library.size();
        program->image = string((const char *)&head, sizeof head) + library + '\0';
    }
    return result;
}

Result nvrtcGetProgramLogSize(Program *program, size_t *size)
{
    *size = program->log.size() + 1;
    return SUCCESS;
}

Result nvrtcGetProgramLog(Program *program, char *log)
{
    memcpy(log, program->log.c_str(), program->log.size() + 1);
    return SUCCESS;
}

Result nvrtcGetCUBINSize(Program *program, size_t *size)
{
    *size = program->image.size();
    return SUCCESS;
}

Result nvrtcGetCUBIN(Program *program, char *image)
{
    return give(program->image, image);
}

Result nvrtcGetPTXSize(Program *program, size_t *size)
{
    return nvrtcGetCUBINSize(program, size);
}

Result nvrtcGetPTX(Program *program, char *image)
{
    return give(program->image, image);
}
}
