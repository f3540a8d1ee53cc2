#!/usr/bin/env python3
"""Checks arrays on an NVIDIA card against the same filters on the processor: to the bit.

    python/tests/card.py [--only NAME] [--few-kernels] [--rates]

It needs the package and NumPy, a driver and NVRTC; PyTorch and CuPy are checked where they can be imported.
Without them small stand-ins of this file's own, in memory that the driver gives, are arrays of a library that
framepipe does not know, and of one that it takes for CuPy. test_card.py runs it without a card.
"""

import argparse
import ctypes
import itertools
import sys
import tempfile
import time
import types

import framepipe
import numpy as np

FILTERS = ["gaussian:sigma=1.2", "box:size=3,sobel", ["gaussian:sigma=1", "laplacian8", "box:size=5"]]
DTYPES = (np.uint8, np.uint16, np.float32)

# Each kernel takes its time to compile on a stand-in for a card.
few_kernels = False


class Driver:
    """The calls of CUDA's driver that a library of arrays makes."""

    def __init__(self):
        self.library = next(self._libraries())
        self.call("cuInit", 0)
        device, self.context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self.call("cuCtxSetCurrent", self.context)

    @staticmethod
    def _libraries():
        for name in ("libcuda.so.1", "libcuda.so"):
            try:
                yield ctypes.CDLL(name)
            except OSError:
                pass
        sys.exit("card.py: there is no NVIDIA driver: libcuda.so.1 cannot be loaded")

    def call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        assert code == 0, f"{name} failed with {code}"

    def allocate(self, count):
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(count, 1)))
        return pointer.value

    def free(self, pointer):
        self.call("cuMemFree_v2", ctypes.c_uint64(pointer))

    def free_bytes(self):
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def current(self):
        context = ctypes.c_void_p()
        self.call("cuCtxGetCurrent", ctypes.byref(context))
        return context.value

    def stream(self):
        stream = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(stream), 1)
        return stream.value

    def up(self, pointer, host, stream=None):
        host = (ctypes.c_uint64(pointer), ctypes.c_void_p(host.ctypes.data), ctypes.c_size_t(host.nbytes))
        if stream is None:
            self.call("cuMemcpyHtoD_v2", *host)
            self.call("cuCtxSynchronize")
        else:
            self.call("cuMemcpyHtoDAsync_v2", *host, ctypes.c_void_p(stream))

    def down(self, host, pointer, stream=None):
        card = (ctypes.c_void_p(host.ctypes.data), ctypes.c_uint64(pointer), ctypes.c_size_t(host.nbytes))
        if stream is None:
            self.call("cuMemcpyDtoH_v2", *card)
        else:
            self.call("cuMemcpyDtoHAsync_v2", *card, ctypes.c_void_p(stream))
            self.call("cuStreamSynchronize", ctypes.c_void_p(stream))


driver = None


class Block:
    """Memory of the card as large as an array of the host's, which its views hold."""

    def __init__(self, host):
        self.host = np.empty_like(host)
        self.pointer = driver.allocate(host.nbytes)

    def __del__(self):
        driver.free(self.pointer)


class Array:
    """An array on the card, or a view of one, as a library that nobody knows would have it."""

    def __init__(self, host, block=None, stream=None, read_only=False):
        if block is None:
            whole = np.ascontiguousarray(host)
            block = Block(whole)
            driver.up(block.pointer, whole)
            host = block.host
        self.like, self.block, self.stream, self.read_only = host, block, stream, read_only

    @property
    def __cuda_array_interface__(self):
        offset = self.like.ctypes.data - self.block.host.ctypes.data
        return {
            "shape": self.like.shape, "strides": self.like.strides, "typestr": self.like.dtype.str,
            "data": (self.block.pointer + offset, self.read_only), "version": 3, "stream": self.stream,
        }

    def view(self, of):
        return type(self)(of(self.like), self.block, self.stream)

    def whole(self):
        host = np.empty_like(self.block.host)
        driver.down(host, self.block.pointer)
        return host


def fetch(array):
    """The values of anything on the card, in the host's memory."""
    interface = array.__cuda_array_interface__
    dtype, shape = np.dtype(interface["typestr"]), interface["shape"]
    strides = interface["strides"] or np.empty(shape, dtype).strides
    steps = [(count - 1) * stride for count, stride in zip(shape, strides)]
    before = -sum(step for step in steps if step < 0)
    flat = np.empty(before + sum(step for step in steps if step > 0) + dtype.itemsize, np.uint8)
    driver.down(flat, interface["data"][0] - before)
    return np.ndarray(shape, dtype, flat, before, strides).copy()


def noise(*shape, dtype=np.uint8, seed=7):
    random = np.random.default_rng(seed)
    if dtype == np.float32:
        return random.standard_normal(shape, dtype)
    return random.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)


def same(result, expected):
    result = result if isinstance(result, np.ndarray) else fetch(result)
    assert result.dtype == expected.dtype and result.shape == expected.shape
    np.testing.assert_array_equal(result, expected)


def refused(error, words, *arguments, **options):
    try:
        framepipe.filter(*arguments, **options)
    except error as raised:
        assert words in str(raised), raised
    else:
        raise AssertionError(f"nothing is said of: {words}")


# --- the checks --------------------------------------------------------------------------------------------


def check_shapes():
    shapes = [(40, 50), (33, 47, 3), (24, 32, 4), (37, 53, 1), (20, 31, 2), (3, 21, 30, 3), (1, 16, 1)]
    cases = itertools.product(FILTERS, shapes, DTYPES)
    if few_kernels:
        cases = [*itertools.product(FILTERS[:1], shapes, (np.uint8,)), (FILTERS[1], shapes[1], np.uint8)]
        cases += [(FILTERS[0], shapes[0], np.uint16), (FILTERS[2], shapes[0], np.uint8)]
        cases += [(FILTERS[0], shape, np.float32) for shape in shapes[:3]]
    for filters, shape, dtype in cases:
        picture = noise(*shape, dtype=dtype)
        result = framepipe.filter(Array(picture), filters)
        assert isinstance(result, framepipe.CardArray) and result.__dlpack_device__() == (2, 0)
        same(result, framepipe.filter(picture, filters))


def check_borders():
    picture = noise(30, 44, 3)
    for border in framepipe.BORDERS[-1:] if few_kernels else framepipe.BORDERS:
        same(framepipe.filter(Array(picture), FILTERS[0], border=border),
             framepipe.filter(picture, FILTERS[0], border=border))
    same(framepipe.filter(Array(picture), FILTERS[0], planes="g"),
         framepipe.filter(picture, FILTERS[0], planes="g"))


def check_views():
    views = {
        "a part": lambda a: a[3:35, 16:40],
        "a part of odd width": lambda a: a[3:35, 16:37],
        "a part that begins anywhere": lambda a: a[1:, 5:48],
        "every other row": lambda a: a[::2],
        "one row": lambda a: a[7:8],
        "one column": lambda a: a[:, 7:8],
    }
    kinds = [((), np.uint8), ((3,), np.uint8), ((4,), np.uint8), ((), np.uint16), ((3,), np.uint16)]
    kinds += [((), np.float32), ((3,), np.float32), ((4,), np.float32)]
    kinds = [*kinds[:3], kinds[6]] if few_kernels else kinds
    for (name, view), (samples, dtype) in itertools.product(views.items(), kinds):
        picture = noise(40, 64, *samples, dtype=dtype)
        expected = framepipe.filter(view(picture), FILTERS[0])
        same(framepipe.filter(Array(picture).view(view), FILTERS[0]), expected)
        # Into a part of another array: what is around it stays.
        around = np.full_like(picture, 17)
        target = Array(around)
        out = target.view(view)
        assert framepipe.filter(Array(picture).view(view), FILTERS[0], out=out) is out, name
        view(around)[...] = expected
        same(target.whole(), around)


def check_planes_side_by_side():
    for shape, dtype in itertools.product(((3, 24, 35), (2, 3, 20, 31), (2, 5, 20, 31)), DTYPES):
        tensor = noise(*shape, dtype=dtype)
        picture = np.moveaxis(tensor, -3, -1)
        result = framepipe.filter(Array(tensor).view(lambda a: np.moveaxis(a, -3, -1)), FILTERS[0])
        same(result, framepipe.filter(picture, FILTERS[0]))
        # As the array lay, so does its result.
        assert np.moveaxis(np.empty(shape, dtype), -3, -1).strides == result.strides


def check_batches_of_any_step():
    batch = noise(5, 20, 24, 3)
    expected = framepipe.filter(batch, FILTERS[0])
    same(framepipe.filter(Array(batch).view(lambda a: a[::-2]), FILTERS[0]), expected[::-2])
    same(framepipe.filter(Array(batch).view(lambda a: np.broadcast_to(a[1], a.shape)), FILTERS[0]),
         np.broadcast_to(expected[1], batch.shape))
    empty = framepipe.filter(Array(batch).view(lambda a: a[:0]), FILTERS[0])
    assert empty.shape == (0, 20, 24, 3)


class OnlyDlpack:
    """An array that says where it lies by DLPack alone."""

    def __init__(self, array):
        self.array, self.streams = array, []

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, *, stream=None):
        self.streams.append(stream)
        return self.array.__dlpack__(stream=stream)


def check_dlpack():
    for shape, dtype in itertools.product(((21, 30), (2, 21, 30, 3)), DTYPES):
        picture = noise(*shape, dtype=dtype)
        once = framepipe.filter(Array(picture), FILTERS[0])
        held = OnlyDlpack(once)
        same(framepipe.filter(held, FILTERS[0]), framepipe.filter(fetch(once), FILTERS[0]))
        assert held.streams == [1]
    # Who takes the capsule gives the array back himself, after which its memory is free.
    api = ctypes.pythonapi
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
    large = framepipe.filter(Array(noise(1024, 1024)), FILTERS[0])
    capsule = large.__dlpack__()
    managed = api.PyCapsule_GetPointer(capsule, b"dltensor")
    used = b"used_dltensor"
    api.PyCapsule_SetName(capsule, used)
    del large, capsule
    before = driver.free_bytes()
    # Data, device, axes, type, shape, strides, offset, manager: the deleter follows.
    deleter = ctypes.c_void_p.from_address(managed + 56).value
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)(managed)
    assert driver.free_bytes() > before


class Stream:
    def __init__(self, pointer):
        self.ptr = pointer


def fake_cupy():
    """A module that passes for CuPy: arrays as above, on whose current stream all happens."""
    module = types.ModuleType("cupy")

    class Device:
        id = 0

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    class ndarray(Array):
        device = Device()

        @property
        def ndim(self):
            return self.like.ndim

        def copy(self, order):
            return ndarray(np.ascontiguousarray(fetch(self)))

        def __setitem__(self, _, other):
            lone = ndarray(fetch(other))
            block = self.whole()
            offset = self.like.ctypes.data - self.block.host.ctypes.data
            np.ndarray(self.like.shape, self.like.dtype, block, offset, self.like.strides)[...] = fetch(lone)
            driver.up(self.block.pointer, block)

    def empty_like(array):
        like = np.empty_like(array.like)
        block = Block.__new__(Block)
        block.host, block.pointer = like, driver.allocate(like.nbytes)
        return ndarray(like, block)

    ndarray.__module__ = "cupy"
    module.ndarray, module.empty_like = ndarray, empty_like
    module.moveaxis = lambda array, a, b: array.view(lambda like: np.moveaxis(like, a, b))
    module.cuda = types.SimpleNamespace(get_current_stream=lambda: module.current)
    module.current = Stream(0)
    return module


def check_streams():
    """What is enqueued on the caller's stream before comes before, and after after; filters share memory."""
    cupy = sys.modules["cupy"] = fake_cupy()
    try:
        streams = [driver.stream() for _ in range(3)]
        pictures = [noise(64, 80, 3, seed=seed) for seed in range(6)]
        expected = [framepipe.filter(picture, FILTERS[2]) for picture in pictures]
        arrays = [cupy.ndarray(np.zeros_like(picture)) for picture in pictures]
        results = []
        for turn, (picture, array) in enumerate(zip(pictures, arrays)):
            cupy.current = Stream(streams[turn % 3])
            driver.up(array.block.pointer, picture, cupy.current.ptr)
            results.append(framepipe.filter(array, FILTERS[2]))
            assert type(results[-1]) is cupy.ndarray
        for turn, (result, wanted) in enumerate(zip(results, expected)):
            host = np.empty_like(wanted)
            driver.down(host, result.block.pointer, streams[turn % 3])
            same(host, wanted)
        # The interface's own stream is the caller's where the library is not known.
        array = Array(np.zeros_like(pictures[0]), stream=streams[1])
        driver.up(array.block.pointer, pictures[0], streams[1])
        same(framepipe.filter(array, FILTERS[2]), expected[0])
    finally:
        driver.call("cuCtxSynchronize")
        del sys.modules["cupy"]


def check_copies():
    """A library that is known makes the copies that are needed."""
    cupy = sys.modules["cupy"] = fake_cupy()
    try:
        picture = noise(30, 40, 4)
        ways = {
            "upside down": lambda a: a[::-1],
            "transposed": lambda a: a.swapaxes(0, 1),
            "five of a kind": lambda a: np.repeat(a, 2, axis=2)[..., :5],
        }
        for name, view in ways.items():
            base = np.repeat(picture, 2, axis=2) if name == "five of a kind" else picture
            lying = (lambda a: a[..., :5]) if name == "five of a kind" else view
            array = cupy.ndarray(base).view(lying)
            expected = framepipe.filter(lying(base), FILTERS[0])
            same(framepipe.filter(array, FILTERS[0]), expected)
            out = cupy.ndarray(base).view(lying)
            framepipe.filter(array, FILTERS[0], out=out)
            same(out, expected)
        array = cupy.ndarray(picture)
        assert framepipe.filter(array, FILTERS[0], out=array) is array
        same(array, framepipe.filter(picture, FILTERS[0]))
    finally:
        del sys.modules["cupy"]


def check_refusals():
    picture = noise(20, 30, 3)
    array = Array(picture)
    refused(ValueError, "share", array, "sharpen", out=array)
    refused(ValueError, "engine='cpu'", array, "sharpen", engine="cpu")
    refused(ValueError, "luma of RGB", array, "sharpen", planes="luma")
    refused(ValueError, "read-only", array, "sharpen", out=Array(picture, read_only=True))
    refused(ValueError, "out is of shape", array, "sharpen", out=Array(picture[1:]))
    refused(TypeError, "out must lie on the card", array, "sharpen", out=np.empty_like(picture))
    refused(ValueError, "lie side by side", array.view(lambda a: a[::-1]), "sharpen")
    refused(ValueError, "lie side by side", array.view(lambda a: a[:, ::2]), "sharpen")
    refused(ValueError, "not checked on a card", Array(noise(9, 9, dtype=np.uint16)), "sharpen",
            format="gray10le")
    refused(ValueError, "is no picture", Array(noise(9)), "sharpen")
    refused(ValueError, "is empty", array.view(lambda a: a[:0]), "sharpen")
    refused(ValueError, "'sharpne'", array, "sharpne")
    refused(TypeError, "float64", Array(picture / 255), "sharpen")
    refused(TypeError, "order of bytes", Array(picture.astype(">u2")), "sharpen")
    host = types.SimpleNamespace(__cuda_array_interface__=picture.__array_interface__ | {"version": 3})
    refused(ValueError, "none of a card's memory", host, "sharpen")


def check_context_and_memory():
    """The caller's context stays current, and memory comes back."""
    array = Array(noise(64, 64))
    framepipe.filter(array, FILTERS[0])
    before = driver.free_bytes()
    for context in (driver.context.value, None):
        driver.call("cuCtxSetCurrent", ctypes.c_void_p(context))
        for _ in range(20):
            framepipe.filter(array, FILTERS[0])
            assert driver.current() == context
    driver.call("cuCtxSetCurrent", driver.context)
    assert driver.free_bytes() == before


def y4m(path, frames):
    """A small video of noise, without a codec."""
    return y4m_of(path, "C420jpeg", noise(frames, 50 * 38 * 3 // 2))


def y4m_of(path, words, frames, width=50, height=38):
    """A video of these frames, each of which is its planes one after another."""
    with open(path, "wb") as file:
        file.write(f"YUV4MPEG2 W{width} H{height} F25:1 Ip A1:1 {words}\n".encode())
        for frame in frames:
            file.write(b"FRAME\n" + frame.tobytes())
    return path


def assert_same_frames(path, **options):
    """Frames that stay on the card are those of the processor; all are kept until the end."""
    with framepipe.open(path, device="cuda", **options) as reader:
        found = list(reader)
    with framepipe.open(path, **options) as reader:
        expected = list(reader)
    assert len(found) == len(expected) > 0
    for on_card, frame in zip(found, expected):
        assert (on_card.device, frame.device) == ("cuda:0", "cpu")
        assert (on_card.pts, on_card.index, on_card.format) == (frame.pts, frame.index, frame.format)
        for plane, wanted in zip(on_card.planes, frame.planes, strict=True):
            assert isinstance(plane, framepipe.CardArray)
            same(plane, wanted)
    return found[0], expected[0]


def check_frames():
    with tempfile.TemporaryDirectory() as folder:
        path = y4m(f"{folder}/noise.y4m", 40)
        assert_same_frames(path)
        on_card, frame = assert_same_frames(path, filters=FILTERS[0], start="3f", end="30f")
        # Where it lies, filtered again; then written, which fetches it.
        same(framepipe.filter(on_card.planes[1], FILTERS[0]), framepipe.filter(frame.planes[1], FILTERS[0]))
        with framepipe.open(path, device="cuda") as reader:
            with framepipe.write(f"{folder}/again.mkv", like=reader, encoder="ffv1") as writer:
                for frame in reader:
                    writer.write(frame)
        with framepipe.open(f"{folder}/again.mkv") as again, framepipe.open(path) as reader:
            for left, right in zip(again, reader, strict=True):
                for plane, wanted in zip(left.planes, right.planes, strict=True):
                    np.testing.assert_array_equal(plane, wanted)
        # A frame outlives its reader, and gives its memory back.
        with framepipe.open(path, device="cuda:0") as reader:
            kept = [next(reader) for _ in range(12)]
        same(kept[11].planes[0], frames_of(path)[11].planes[0])
        for words, options in (
            ("'gpu' is no device", {"device": "gpu"}),
            ("not by the engine 'cpu'", {"device": "cuda", "engine": "cpu"}),
            ("leave `format` out", {"device": "cuda", "format": "rgb24"}),
            ("there is no", {"device": "cuda:99"}),
        ):
            try:
                framepipe.open(path, **options)
            except (ValueError, framepipe.Error) as raised:
                assert words in str(raised), raised
            else:
                raise AssertionError(words)
        if not few_kernels:
            # Long enough for the card's own decoders.
            long = f"{folder}/long.mp4"
            framepipe.run("synthetic:1280x720:yuv420p:30:2400", long, filters="identity", preset="veryfast")
            with framepipe.open(long, device="cuda", filters=FILTERS[0]) as reader:
                print(f"        {reader.description}")
                found = {frame.index: frame for frame in reader if frame.index % 300 == 7}
            with framepipe.open(long, filters=FILTERS[0]) as reader:
                for frame in reader:
                    if frame.index in found:
                        for plane, wanted in zip(found.pop(frame.index).planes, frame.planes, strict=True):
                            same(plane, wanted)
            assert not found


def frames_of(path):
    with framepipe.open(path) as reader:
        return list(reader)


def check_frames_on_other_streams():
    """Memory of a frame that is dropped is written to again only when what reads it is done."""
    stream = driver.stream()
    with tempfile.TemporaryDirectory() as folder:
        path = y4m(f"{folder}/noise.y4m", 60)
        expected = [frame.planes[0] for frame in frames_of(path)]
        copies = []
        with framepipe.open(path, device="cuda") as reader:
            for frame in reader:
                plane = frame.planes[0].__cuda_array_interface__
                copy = driver.allocate(plane["strides"][0] * 38)
                driver.call("cuMemcpyDtoDAsync_v2", ctypes.c_uint64(copy), ctypes.c_uint64(plane["data"][0]),
                            ctypes.c_size_t(plane["strides"][0] * 38), ctypes.c_void_p(stream))
                copies.append((copy, plane["strides"][0]))
        driver.call("cuStreamSynchronize", ctypes.c_void_p(stream))
        for (copy, pitch), wanted in zip(copies, expected, strict=True):
            host = np.empty((38, pitch), np.uint8)
            driver.down(host, copy)
            np.testing.assert_array_equal(host[:, :50], wanted)
            driver.free(copy)


def smooth(width, height, depth):
    """Planes of 4:2:0 in which all changes slowly."""
    planes = []
    for step, (start, across, down) in ((1, (60, 1.5, 1.0)), (2, (80, 1.0, 0.5)), (2, (180, -0.5, -1.0))):
        y, x = np.mgrid[: -(-height // step), : -(-width // step)]
        planes.append((start + across * x + down * y).ravel() * 2 ** (depth - 8))
    return np.concatenate(planes).round().astype(np.uint8 if depth == 8 else "<u2")


def check_rgb():
    """RGB is made where the frame lies, with the bits of the host's."""
    videos = [
        ("C420jpeg", 50, 38, [smooth(50, 38, 8)]),
        ("C420mpeg2 XCOLORRANGE=FULL", 38, 50, [smooth(38, 50, 8)]),
        ("C420p10", 64, 22, [smooth(64, 22, 10)]),
        ("C444", 21, 5, noise(2, 21 * 5 * 3)),
        ("C444p12", 1, 3, noise(2, 3 * 3, dtype=np.uint16) >> 4),
        ("Cmono XCOLORRANGE=FULL", 17, 9, noise(1, 17 * 9)),
    ]
    with tempfile.TemporaryDirectory() as folder:
        for words, width, height, frames in videos:
            path = y4m_of(f"{folder}/video.y4m", words, frames, width, height)
            with framepipe.open(path, device="cuda") as reader:
                found = [frame.to_rgb() for frame in reader]
            assert len(found) == len(frames)
            for rgb, frame in zip(found, frames_of(path), strict=True):
                expected = frame.to_rgb()
                assert isinstance(rgb, framepipe.CardArray) and rgb.__dlpack_device__() == (2, 0)
                assert (rgb.shape, rgb.dtype) == (expected.shape, expected.dtype), words
                same(rgb, expected)
        path = y4m(f"{folder}/noise.y4m", 30)
        after = []
        for _ in range(3):
            # Arrays outlive reader and frame, and none of them is another's memory.
            with framepipe.open(path, device="cuda") as reader:
                frames = list(reader)
            found = [frame.to_rgb() for frame in frames]
            assert len({rgb.__cuda_array_interface__["data"][0] for rgb in found}) == 30
            same(found[0], fetch(frames[0].to_rgb()))
            try:
                frames[0].with_rgb(found[0])
            except TypeError as raised:
                assert "lies on a card" in str(raised)
            else:
                raise AssertionError("an array on a card was taken")
            del frames, found
            after.append(driver.free_bytes())
        assert after[1] == after[2], after


def check_rgb_on_other_streams():
    """What a stream still writes to a plane is in the RGB that is made after."""
    stream = driver.stream()
    with tempfile.TemporaryDirectory() as folder:
        path = y4m(f"{folder}/noise.y4m", 12)
        with framepipe.open(path, device="cuda") as reader:
            for turn, frame in enumerate(reader):
                gray = np.full(38 * frame.planes[0].strides[0], 40 + 10 * turn, np.uint8)
                driver.up(frame.planes[0].__cuda_array_interface__["data"][0], gray, stream)
                for plane in frame.planes[1:]:
                    neutral = np.full(19 * plane.strides[0], 128, np.uint8)
                    driver.up(plane.__cuda_array_interface__["data"][0], neutral, stream)
                expected = np.floor((40 + 10 * turn - 16) / 219 * 255 + 0.5).astype(np.uint8)
                same(frame.to_rgb(), np.full((38, 50, 3), expected))


def check_torch():
    try:
        import torch

        if not torch.cuda.is_available():
            return "no PyTorch with a card"
    except ImportError:
        return "no PyTorch"
    picture = noise(2, 3, 60, 81)
    tensor = torch.from_numpy(picture).cuda()
    expected = framepipe.filter(picture.transpose(0, 2, 3, 1), FILTERS[2])
    with torch.cuda.stream(torch.cuda.Stream()):
        moved = (tensor * 1).permute(0, 2, 3, 1)
        result = framepipe.filter(moved, FILTERS[2])
        assert isinstance(result, torch.Tensor) and result.stride() == moved.stride()
        same(result.cpu().numpy(), expected)
        out = torch.empty_like(result)
        assert framepipe.filter(moved, FILTERS[2], out=out) is out
        same(out.cpu().numpy(), expected)
    if hasattr(torch, "uint16"):
        deep = noise(40, 50, dtype=np.uint16)
        result = framepipe.filter(torch.from_numpy(deep).cuda(), FILTERS[0])
        same(result.cpu().numpy(), framepipe.filter(deep, FILTERS[0]))
    same(
        framepipe.filter(tensor.float(), FILTERS[0]).cpu().numpy(),
        framepipe.filter(tensor.float().cpu().numpy(), FILTERS[0]),
    )
    handed = torch.from_dlpack(framepipe.filter(Array(picture[0, 0]), FILTERS[0]))
    same(handed.cpu().numpy(), framepipe.filter(picture[0, 0], FILTERS[0]))
    with tempfile.TemporaryDirectory() as folder:
        path = y4m(f"{folder}/noise.y4m", 40)
        with framepipe.open(path, device="cuda") as reader:
            frames = list(reader)
        planes = [[torch.from_dlpack(plane) for plane in frame.planes] for frame in frames]
        pictures = [torch.from_dlpack(frame.to_rgb()) for frame in frames]
        for frame, picture in zip(frames, pictures, strict=True):
            assert picture.is_cuda and picture.is_contiguous()
            same(picture.cpu().numpy(), fetch(frame.to_rgb()))
        for tensors, frame in zip(planes, frames_of(path), strict=True):
            for tensor, wanted in zip(tensors, frame.planes, strict=True):
                assert tensor.is_cuda
                same(tensor.cpu().numpy(), wanted)
    return None


def check_other_libraries():
    """JAX and Numba take frames and results, and their arrays are filtered where they lie."""
    tried = []
    picture = noise(60, 81, 3)
    expected = framepipe.filter(picture, FILTERS[2])
    try:
        import jax
        import jax.numpy

        if jax.default_backend() == "gpu":
            result = framepipe.filter(jax.numpy.asarray(picture), FILTERS[2])
            np.testing.assert_array_equal(np.asarray(jax.dlpack.from_dlpack(result)), expected)
            tried.append("JAX")
    except ImportError:
        pass
    try:
        from numba import cuda

        if cuda.is_available():
            result = framepipe.filter(cuda.to_device(picture), FILTERS[2])
            same(cuda.as_cuda_array(result).copy_to_host(), expected)
            tried.append("Numba")
    except ImportError:
        pass
    return None if len(tried) == 2 else f"only {', '.join(tried) or 'none of them'}"


def check_cupy():
    try:
        import cupy
    except ImportError:
        return "no CuPy"
    picture = noise(60, 81, 3)
    with cupy.cuda.Stream(non_blocking=True):
        array = cupy.asarray(picture)
        for view in (lambda a: a, lambda a: a[::-1], lambda a: a[2:50, 3:60]):
            result = framepipe.filter(view(array), FILTERS[2])
            assert isinstance(result, cupy.ndarray)
            same(cupy.asnumpy(result), framepipe.filter(view(picture), FILTERS[2]))
    return None


CHECKS = [
    check_shapes, check_borders, check_views, check_planes_side_by_side, check_batches_of_any_step,
    check_dlpack, check_streams, check_copies, check_refusals, check_context_and_memory, check_frames,
    check_frames_on_other_streams, check_rgb, check_rgb_on_other_streams, check_torch, check_cupy,
    check_other_libraries,
]


def rate(seconds):
    """Prints the microseconds of a call for a picture on the card: to enqueue it, and until it is done."""
    cupy = sys.modules["cupy"] = fake_cupy()
    for shape in ((256, 256), (1080, 1920), (1080, 1920, 3), (2160, 3840, 3)):
        array = cupy.ndarray(noise(*shape))
        out = cupy.empty_like(array)
        for filters in ("box:size=3", "gaussian:sigma=2"):
            framepipe.filter(array, filters, out=out)
            driver.call("cuCtxSynchronize")
            calls, begun = 0, time.perf_counter()
            while calls < 200 and time.perf_counter() - begun < seconds:
                framepipe.filter(array, filters, out=out)
                calls += 1
            enqueued = time.perf_counter() - begun
            driver.call("cuCtxSynchronize")
            done = time.perf_counter() - begun
            enqueued, done = 1e6 * enqueued / calls, 1e6 * done / calls
            size = "x".join(map(str, shape))
            print(f"  {size:>14} {filters:18} {enqueued:8.1f} us to enqueue, {done:8.1f} us a picture")
    del sys.modules["cupy"]


def main():
    global driver, few_kernels
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="checks whose names contain this")
    parser.add_argument("--few-kernels", action="store_true", help="of some checks only a part")
    parser.add_argument("--rates", action="store_true", help="and time calls")
    options = parser.parse_args()
    driver, few_kernels = Driver(), options.few_kernels
    for check in CHECKS:
        if options.only not in check.__name__:
            continue
        begun = time.perf_counter()
        skipped = check()
        name = check.__name__.removeprefix("check_").replace("_", " ")
        took = f"{time.perf_counter() - begun:.1f} s"
        print(f"{'skipped' if skipped else 'ok':8}{name}: {skipped or took}", flush=True)
    if options.rates:
        rate(1)


if __name__ == "__main__":
    main()
