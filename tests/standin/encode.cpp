// The entry points of NVIDIA's encoding library, as far as FFmpeg calls them, for a card that encodes
// H.264 of 8 bits and 4:2:0 without loss. Structures are those of NVIDIA's header, which says what each
// call is for.
//
//   FRAMEPIPE_STANDIN_FAIL    CALL:N:CODE: the Nth call of this name fails with this code
//   FRAMEPIPE_STANDIN_REPORT  as the driver's
//
// A picture is encoded in the call that hands it over, from what is in memory then: work that is enqueued
// and not waited for is not seen.

#include "h264.h"
#include "settings.h"

#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <ffnvcodec/nvEncodeAPI.h>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <set>
#include <string>

using namespace standin;
using std::string;

namespace {

// A picture's memory: the library's own on the host, or somebody's on the card.
struct Input {
    NV_ENC_BUFFER_FORMAT format;
    unsigned height, pitch;
    uint8_t *begin;
    Bytes own;
    bool is_mapped = true;

    size_t bytes() const { return (size_t)pitch * height * 3 / 2; }
};

struct Output {
    Bytes bytes;
    uint64_t time = 0;
    bool is_full = false;
};

struct Session {
    void *context;
    bool is_ready = false, repeats_sets = true;
    Sequence sequence{};
    uint64_t pictures = 0;
    std::set<Input *> inputs, resources;
    std::set<Output *> outputs;
};

struct Library {
    std::mutex lock;
    std::set<Session *> sessions;
    std::map<string, unsigned> calls;
    string complaints;
    const string fail = setting("FAIL");

    void complain(const string &what)
    {
        fprintf(stderr, "stand-in: %s\n", what.c_str());
        complaints += "complaint " + what + '\n';
    }

    ~Library()
    {
        const string path = setting("REPORT");
        FILE *file = path.empty() ? nullptr : fopen(path.c_str(), "a");
        if (!file) return;
        size_t inputs = 0, resources = 0, outputs = 0;
        for (const Session *session : sessions) {
            inputs += session->inputs.size();
            resources += session->resources.size();
            outputs += session->outputs.size();
        }
        for (const auto &[name, count] : calls) fprintf(file, "call %s %u\n", name.c_str(), count);
        fprintf(file, "left encoders %zu\nleft encoder-inputs %zu\n", sessions.size(), inputs);
        fprintf(file, "left encoder-resources %zu\nleft encoder-outputs %zu\n", resources, outputs);
        fputs(complaints.c_str(), file);
        fclose(file);
    }
};

Library &library()
{
    static Library all;
    return all;
}

// A function of the stand-in's driver, which FFmpeg has loaded.
template <class F> F *driver_call(const char *name)
{
    static void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    return driver ? (F *)dlsym(driver, name) : nullptr;
}

bool is_on_card(const uint8_t *at)
{
    constexpr int CARD = 9;
    int card = 0;
    const auto ask = driver_call<int(void *, int, uint64_t)>("cuPointerGetAttribute");
    return ask && ask(&card, CARD, (uint64_t)at) == 0;
}

// Counts a call, and fails it if that was requested.
struct Call {
    std::unique_lock<std::mutex> held{library().lock};
    Session *session;
    NVENCSTATUS status = NV_ENC_SUCCESS;

    Call(const char *name, void *encoder, bool needs_context = false) : session((Session *)encoder)
    {
        Library &l = library();
        const unsigned count = ++l.calls[name];
        const size_t length = strlen(name);
        unsigned at = 0;
        int with = 0;
        const bool is_meant = l.fail.compare(0, length, name) == 0 &&
                              sscanf(l.fail.c_str() + length, ":%u:%d", &at, &with) == 2;
        if (is_meant && at == count) {
            status = (NVENCSTATUS)with;
        } else if (encoder && l.sessions.count(session) == 0) {
            status = NV_ENC_ERR_INVALID_ENCODERDEVICE;
        } else if (needs_context) {
            void *now = nullptr;
            const auto ask = driver_call<int(void **)>("cuCtxGetCurrent");
            if (!ask || ask(&now) != 0 || now != session->context)
                l.complain(string(name) + " was called without its session's context");
        }
    }
};

#define BEGIN(...)               \
    Call call(__VA_ARGS__);      \
    Library &l = library();      \
    Session &s = *call.session;  \
    (void)l, (void)s;            \
    if (call.status != NV_ENC_SUCCESS) return call.status

bool is_h264(const GUID &guid)
{
    return memcmp(&guid, &NV_ENC_CODEC_H264_GUID, sizeof guid) == 0;
}

bool is_known(NV_ENC_BUFFER_FORMAT format)
{
    return format == NV_ENC_BUFFER_FORMAT_NV12 || format == NV_ENC_BUFFER_FORMAT_YV12;
}

Samples samples_of(const Input &input)
{
    const uint8_t *y = input.begin, *chroma = y + (size_t)input.pitch * input.height;
    if (input.format == NV_ENC_BUFFER_FORMAT_NV12)
        return {{y, chroma, chroma + 1}, {1, 2, 2}, {input.pitch, input.pitch, input.pitch}};
    // V comes before U, each with half as long rows.
    const unsigned half = input.pitch / 2;
    return {{y, chroma + (size_t)half * (input.height / 2), chroma}, {1, 1, 1}, {input.pitch, half, half}};
}

// --- sessions ----------------------------------------------------------------------------------------------

NVENCSTATUS open_session(NV_ENC_OPEN_ENCODE_SESSION_EX_PARAMS *parameters, void **encoder)
{
    Call call("nvEncOpenEncodeSessionEx", nullptr);
    if (call.status != NV_ENC_SUCCESS) return call.status;
    if (parameters->deviceType != NV_ENC_DEVICE_TYPE_CUDA) return NV_ENC_ERR_UNSUPPORTED_DEVICE;
    auto *session = new Session{};
    session->context = parameters->device;
    library().sessions.insert(session);
    *encoder = session;
    return NV_ENC_SUCCESS;
}

NVENCSTATUS count_codecs(void *encoder, uint32_t *count)
{
    BEGIN("nvEncGetEncodeGUIDCount", encoder);
    *count = 1;
    return NV_ENC_SUCCESS;
}

NVENCSTATUS list_codecs(void *encoder, GUID *guids, uint32_t room, uint32_t *count)
{
    BEGIN("nvEncGetEncodeGUIDs", encoder);
    if (room < 1) return NV_ENC_ERR_INVALID_PARAM;
    guids[0] = NV_ENC_CODEC_H264_GUID;
    *count = 1;
    return NV_ENC_SUCCESS;
}

NVENCSTATUS capability(void *encoder, GUID, NV_ENC_CAPS_PARAM *parameters, int *value)
{
    BEGIN("nvEncGetEncodeCaps", encoder);
    switch (parameters->capsToQuery) {
    case NV_ENC_CAPS_WIDTH_MAX:
    case NV_ENC_CAPS_HEIGHT_MAX: *value = 4096; break;
    default: *value = 0;  // neither 10 bits nor 4:4:4, for example
    }
    return NV_ENC_SUCCESS;
}

NVENCSTATUS preset(void *encoder, GUID, GUID, NV_ENC_TUNING_INFO, NV_ENC_PRESET_CONFIG *configuration)
{
    BEGIN("nvEncGetEncodePresetConfigEx", encoder);
    configuration->presetCfg.frameIntervalP = 1;
    configuration->presetCfg.gopLength = 1;
    return NV_ENC_SUCCESS;
}

NVENCSTATUS initialise(void *encoder, NV_ENC_INITIALIZE_PARAMS *p)
{
    BEGIN("nvEncInitializeEncoder", encoder, true);
    const NV_ENC_CONFIG_H264 &h264 = p->encodeConfig->encodeCodecConfig.h264Config;
    const NV_ENC_CONFIG_H264_VUI_PARAMETERS &vui = h264.h264VUIParameters;
    if (!is_h264(p->encodeGUID) || p->encodeWidth % 2 || p->encodeHeight % 2 || h264.chromaFormatIDC != 1)
        return NV_ENC_ERR_UNSUPPORTED_PARAM;
    uint64_t across = (uint64_t)p->darWidth * p->encodeHeight, down = (uint64_t)p->darHeight * p->encodeWidth;
    const uint64_t divisor = std::gcd(across, down);
    if (divisor == 0) return NV_ENC_ERR_INVALID_PARAM;
    const auto known = [&](unsigned v) { return vui.colourDescriptionPresentFlag ? v : 2; };
    s.sequence = {p->encodeWidth,
                  p->encodeHeight,
                  (unsigned)(across / divisor),
                  (unsigned)(down / divisor),
                  vui.videoFullRangeFlag != 0,
                  known((unsigned)vui.colourPrimaries),
                  known((unsigned)vui.transferCharacteristics),
                  known((unsigned)vui.colourMatrix)};
    s.repeats_sets = !h264.disableSPSPPS;
    s.is_ready = true;
    return NV_ENC_SUCCESS;
}

NVENCSTATUS set_streams(void *encoder, NV_ENC_CUSTREAM_PTR, NV_ENC_CUSTREAM_PTR)
{
    BEGIN("nvEncSetIOCudaStreams", encoder, true);
    return NV_ENC_SUCCESS;
}

NVENCSTATUS reconfigure(void *encoder, NV_ENC_RECONFIGURE_PARAMS *)
{
    BEGIN("nvEncReconfigureEncoder", encoder);
    return NV_ENC_ERR_UNIMPLEMENTED;
}

NVENCSTATUS headers(void *encoder, NV_ENC_SEQUENCE_PARAM_PAYLOAD *payload)
{
    BEGIN("nvEncGetSequenceParams", encoder);
    const Bytes sets = parameter_sets(s.sequence);
    if (sets.size() > payload->inBufferSize) return NV_ENC_ERR_NOT_ENOUGH_BUFFER;
    memcpy(payload->spsppsBuffer, sets.data(), sets.size());
    *payload->outSPSPPSPayloadSize = (uint32_t)sets.size();
    return NV_ENC_SUCCESS;
}

NVENCSTATUS destroy(void *encoder)
{
    BEGIN("nvEncDestroyEncoder", encoder);
    if (!s.inputs.empty() || !s.resources.empty() || !s.outputs.empty())
        l.complain("an encoder was destroyed before what belongs to it");
    l.sessions.erase(&s);
    delete &s;
    return NV_ENC_SUCCESS;
}

const char *last_error(void *)
{
    return "";
}

// --- memory ------------------------------------------------------------------------------------------------

NVENCSTATUS make_input(void *encoder, NV_ENC_CREATE_INPUT_BUFFER *p)
{
    BEGIN("nvEncCreateInputBuffer", encoder);
    if (!is_known(p->bufferFmt)) return NV_ENC_ERR_UNSUPPORTED_PARAM;
    auto *input = new Input{p->bufferFmt, p->height, (p->width + 63) / 64 * 64, nullptr, {}};
    input->own.resize(input->bytes());
    input->begin = input->own.data();
    s.inputs.insert(input);
    p->inputBuffer = input;
    return NV_ENC_SUCCESS;
}

NVENCSTATUS lock_input(void *encoder, NV_ENC_LOCK_INPUT_BUFFER *p)
{
    BEGIN("nvEncLockInputBuffer", encoder);
    auto *input = (Input *)p->inputBuffer;
    if (s.inputs.count(input) == 0) return NV_ENC_ERR_INVALID_PTR;
    p->bufferDataPtr = input->begin;
    p->pitch = input->pitch;
    return NV_ENC_SUCCESS;
}

NVENCSTATUS unlock_input(void *encoder, NV_ENC_INPUT_PTR)
{
    BEGIN("nvEncUnlockInputBuffer", encoder);
    return NV_ENC_SUCCESS;
}

NVENCSTATUS destroy_input(void *encoder, NV_ENC_INPUT_PTR input)
{
    BEGIN("nvEncDestroyInputBuffer", encoder);
    if (s.inputs.erase((Input *)input) == 0) return NV_ENC_ERR_INVALID_PTR;
    delete (Input *)input;
    return NV_ENC_SUCCESS;
}

NVENCSTATUS register_resource(void *encoder, NV_ENC_REGISTER_RESOURCE *p)
{
    BEGIN("nvEncRegisterResource", encoder, true);
    if (p->resourceType != NV_ENC_INPUT_RESOURCE_TYPE_CUDADEVICEPTR || !is_known(p->bufferFormat) ||
        p->width != s.sequence.width || p->height != s.sequence.height || p->pitch < p->width || p->pitch % 4)
        return NV_ENC_ERR_INVALID_PARAM;
    auto *begin = (uint8_t *)p->resourceToRegister;
    auto *input = new Input{p->bufferFormat, p->height, p->pitch, begin, {}, false};
    if (!is_on_card(input->begin) || !is_on_card(input->begin + input->bytes() - 1)) {
        delete input;
        return NV_ENC_ERR_RESOURCE_REGISTER_FAILED;
    }
    s.resources.insert(input);
    p->registeredResource = input;
    return NV_ENC_SUCCESS;
}

NVENCSTATUS unregister_resource(void *encoder, NV_ENC_REGISTERED_PTR resource)
{
    BEGIN("nvEncUnregisterResource", encoder);
    auto *input = (Input *)resource;
    if (s.resources.erase(input) == 0) return NV_ENC_ERR_RESOURCE_NOT_REGISTERED;
    if (input->is_mapped) l.complain("a resource was given up while it was mapped");
    if (!is_on_card(input->begin)) l.complain("a resource was freed while an encoder knew it");
    delete input;
    return NV_ENC_SUCCESS;
}

NVENCSTATUS map(void *encoder, NV_ENC_MAP_INPUT_RESOURCE *p)
{
    BEGIN("nvEncMapInputResource", encoder, true);
    auto *input = (Input *)p->registeredResource;
    if (s.resources.count(input) == 0 || input->is_mapped) return NV_ENC_ERR_MAP_FAILED;
    input->is_mapped = true;
    p->mappedResource = input;
    p->mappedBufferFmt = input->format;
    return NV_ENC_SUCCESS;
}

NVENCSTATUS unmap(void *encoder, NV_ENC_INPUT_PTR resource)
{
    BEGIN("nvEncUnmapInputResource", encoder);
    auto *input = (Input *)resource;
    if (s.resources.count(input) == 0 || !input->is_mapped) return NV_ENC_ERR_RESOURCE_NOT_MAPPED;
    input->is_mapped = false;
    return NV_ENC_SUCCESS;
}

NVENCSTATUS make_output(void *encoder, NV_ENC_CREATE_BITSTREAM_BUFFER *p)
{
    BEGIN("nvEncCreateBitstreamBuffer", encoder);
    auto *output = new Output;
    s.outputs.insert(output);
    p->bitstreamBuffer = output;
    return NV_ENC_SUCCESS;
}

NVENCSTATUS destroy_output(void *encoder, NV_ENC_OUTPUT_PTR output)
{
    BEGIN("nvEncDestroyBitstreamBuffer", encoder);
    if (s.outputs.erase((Output *)output) == 0) return NV_ENC_ERR_INVALID_PTR;
    delete (Output *)output;
    return NV_ENC_SUCCESS;
}

// --- pictures ----------------------------------------------------------------------------------------------

NVENCSTATUS encode(void *encoder, NV_ENC_PIC_PARAMS *p)
{
    BEGIN("nvEncEncodePicture", encoder, true);
    if (!s.is_ready) return NV_ENC_ERR_ENCODER_NOT_INITIALIZED;
    if (p->encodePicFlags & NV_ENC_PIC_FLAG_EOS) return NV_ENC_SUCCESS;
    auto *input = (Input *)p->inputBuffer;
    auto *output = (Output *)p->outputBitstream;
    const bool is_own = s.inputs.count(input) != 0;
    if ((!is_own && s.resources.count(input) == 0) || s.outputs.count(output) == 0)
        return NV_ENC_ERR_INVALID_PTR;
    if (output->is_full) return NV_ENC_ERR_LOCK_BUSY;
    if (!input->is_mapped) return NV_ENC_ERR_RESOURCE_NOT_MAPPED;
    if (!is_own && (!is_on_card(input->begin) || !is_on_card(input->begin + input->bytes() - 1))) {
        l.complain("a picture was to be encoded whose memory was freed");
        return NV_ENC_ERR_INVALID_PTR;
    }
    output->bytes = s.repeats_sets ? parameter_sets(s.sequence) : Bytes();
    const Bytes slice = picture(s.sequence, samples_of(*input), s.pictures++);
    output->bytes.insert(output->bytes.end(), slice.begin(), slice.end());
    output->time = p->inputTimeStamp;
    output->is_full = true;
    return NV_ENC_SUCCESS;
}

NVENCSTATUS lock_output(void *encoder, NV_ENC_LOCK_BITSTREAM *p)
{
    BEGIN("nvEncLockBitstream", encoder);
    auto *output = (Output *)p->outputBitstream;
    if (s.outputs.count(output) == 0 || !output->is_full) return NV_ENC_ERR_INVALID_PTR;
    p->bitstreamBufferPtr = output->bytes.data();
    p->bitstreamSizeInBytes = (uint32_t)output->bytes.size();
    p->outputTimeStamp = output->time;
    p->pictureType = NV_ENC_PIC_TYPE_IDR;
    p->frameAvgQP = 1;
    return NV_ENC_SUCCESS;
}

NVENCSTATUS unlock_output(void *encoder, NV_ENC_OUTPUT_PTR output)
{
    BEGIN("nvEncUnlockBitstream", encoder);
    if (s.outputs.count((Output *)output) == 0) return NV_ENC_ERR_INVALID_PTR;
    ((Output *)output)->is_full = false;
    return NV_ENC_SUCCESS;
}

}  // namespace

extern "C" {

NVENCSTATUS NvEncodeAPIGetMaxSupportedVersion(uint32_t *version)
{
    *version = NVENCAPI_MAJOR_VERSION << 4 | NVENCAPI_MINOR_VERSION;
    return NV_ENC_SUCCESS;
}

NVENCSTATUS NvEncodeAPICreateInstance(NV_ENCODE_API_FUNCTION_LIST *list)
{
    if (list->version != NV_ENCODE_API_FUNCTION_LIST_VER) return NV_ENC_ERR_INVALID_VERSION;
    list->nvEncOpenEncodeSessionEx = open_session;
    list->nvEncGetEncodeGUIDCount = count_codecs;
    list->nvEncGetEncodeGUIDs = list_codecs;
    list->nvEncGetEncodeCaps = capability;
    list->nvEncGetEncodePresetConfigEx = preset;
    list->nvEncInitializeEncoder = initialise;
    list->nvEncSetIOCudaStreams = set_streams;
    list->nvEncReconfigureEncoder = reconfigure;
    list->nvEncGetSequenceParams = headers;
    list->nvEncDestroyEncoder = destroy;
    list->nvEncGetLastErrorString = last_error;
    list->nvEncCreateInputBuffer = make_input;
    list->nvEncLockInputBuffer = lock_input;
    list->nvEncUnlockInputBuffer = unlock_input;
    list->nvEncDestroyInputBuffer = destroy_input;
    list->nvEncRegisterResource = register_resource;
    list->nvEncUnregisterResource = unregister_resource;
    list->nvEncMapInputResource = map;
    list->nvEncUnmapInputResource = unmap;
    list->nvEncCreateBitstreamBuffer = make_output;
    list->nvEncDestroyBitstreamBuffer = destroy_output;
    list->nvEncEncodePicture = encode;
    list->nvEncLockBitstream = lock_output;
    list->nvEncUnlockBitstream = unlock_output;
    return NV_ENC_SUCCESS;
}
}
