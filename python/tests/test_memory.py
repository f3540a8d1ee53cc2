"""Where arrays lie: strides, what is copied and what is not, sharing, threads and forks."""

import os
import threading
import time
import warnings

import framepipe
import numpy as np
import pytest

FILTER = "gaussian:sigma=1.2"


def tight(array):
    """The result for the same pictures without any strides."""
    return framepipe.filter(np.ascontiguousarray(array), FILTER)


VIEWS = {
    "a part, with padded rows": lambda a: a[3:30, 5:41],
    "upside down": lambda a: a[::-1],
    "from right to left": lambda a: a[:, ::-1],
    "every other row": lambda a: a[::2],
    "every other pixel": lambda a: a[:, 1::2],
    "transposed": lambda a: a.swapaxes(0, 1),
    "one row": lambda a: a[7:8],
    "one column": lambda a: a[:, 7:8],
    "one pixel": lambda a: a[4:5, 4:5],
    "a row for all": lambda a: np.broadcast_to(a[:1], a.shape),
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("samples", [(), (1,), (2,), (3,), (4,), (5,)])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_views_of_any_stride(noise, name, samples, dtype):
    view = VIEWS[name](noise(40, 50, *samples, dtype=dtype))
    expected = tight(view)
    np.testing.assert_array_equal(framepipe.filter(view, FILTER), expected)
    # And the same view of another array to store into; what is around it stays.
    if name != "a row for all":
        around = np.full((40, 50, *samples), 17, dtype)
        out = VIEWS[name](around)
        assert framepipe.filter(view, FILTER, out=out) is out
        np.testing.assert_array_equal(out, expected)
        out[...] = 17
        assert (around == 17).all()


def test_samples_of_a_larger_pixel_and_the_other_order_of_bytes(noise):
    picture = noise(30, 40, 4)
    np.testing.assert_array_equal(framepipe.filter(picture[..., :3], FILTER), tight(picture[..., :3]))
    np.testing.assert_array_equal(framepipe.filter(picture[..., ::-1], FILTER), tight(picture[..., ::-1]))
    deep = noise(30, 40, dtype=np.uint16)
    foreign = deep.astype(">u2")
    result = framepipe.filter(foreign, FILTER)
    assert result.dtype == np.uint16 and result.dtype.isnative
    np.testing.assert_array_equal(result, tight(deep))
    out = np.empty_like(foreign)
    np.testing.assert_array_equal(framepipe.filter(foreign, FILTER, out=out), tight(deep))


def test_batches_go_in_any_direction(noise):
    batch = noise(6, 20, 24, 3)
    expected = np.stack([tight(picture) for picture in batch])
    np.testing.assert_array_equal(framepipe.filter(batch, FILTER), expected)
    np.testing.assert_array_equal(framepipe.filter(batch[::-2], FILTER), expected[::-2])
    out = np.zeros_like(batch)
    framepipe.filter(batch, FILTER, out=out[::-1])
    np.testing.assert_array_equal(out[::-1], expected)
    same = np.broadcast_to(batch[0], batch.shape)
    np.testing.assert_array_equal(framepipe.filter(same, FILTER)[5], expected[0])


def test_a_result_may_lie_in_what_it_is_made_of(noise):
    picture = noise(40, 50)
    expected = tight(picture)
    assert framepipe.filter(picture, FILTER, out=picture) is picture
    np.testing.assert_array_equal(picture, expected)
    picture = noise(40, 50)
    expected = tight(picture[:30])
    framepipe.filter(picture[:30], FILTER, out=picture[10:])
    np.testing.assert_array_equal(picture[10:], expected)


def test_nothing_is_copied_where_strides_allow(noise, monkeypatch):
    picture = noise(60, 70, 3)[:50, :64]
    out = np.zeros((50, 80, 3), np.uint8)[:, :64]
    given = {}
    real = framepipe._arrays._framepipe.filter_pictures

    def watched(source, target, *rest, **more):
        given.update(source=source, target=target)
        return real(source, target, *rest, **more)

    monkeypatch.setattr(framepipe._arrays._framepipe, "filter_pictures", watched)
    framepipe.filter(picture, FILTER, out=out)
    assert given["source"].__array_interface__["data"] == picture.__array_interface__["data"]
    assert given["target"].__array_interface__["data"] == out.__array_interface__["data"]


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (5, 5, 0), (2, 0, 5, 3)])
def test_pictures_without_pixels_are_refused(shape):
    with pytest.raises(ValueError, match="is empty"):
        framepipe.filter(np.zeros(shape, np.uint8), FILTER)


def test_a_batch_of_none_is_a_batch_of_none():
    assert framepipe.filter(np.zeros((0, 4, 5, 3), np.uint8), FILTER).shape == (0, 4, 5, 3)
    with pytest.raises(ValueError, match="is no filter"):
        framepipe.filter(np.zeros((0, 4, 5, 3), np.uint8), "nonsense")


@pytest.mark.parametrize(
    "dtype, advice",
    [
        ("float16", r"array.astype\(numpy.float32\)"),
        ("float64", r"array.astype\(numpy.float32\)"),
        ("bool", r"astype\(numpy.uint8\) \* 255"),
        ("int16", "numpy.clip"),
        ("uint32", "numpy.minimum"),
        ("complex64", "numpy.uint8 or"),
    ],
)
def test_other_types_are_told_what_to_do(dtype, advice):
    with pytest.raises(TypeError, match=f"arrays of {dtype} are not filtered; .*{advice}"):
        framepipe.filter(np.zeros((4, 4), dtype), FILTER)


@pytest.mark.parametrize(
    "arguments, error, sentence",
    [
        ({"filters": "gausian:sigma=2"}, ValueError, "'gausian' is no filter; did you mean 'gaussian'"),
        ({"filters": "median"}, ValueError, "that is no convolution"),
        ({"filters": "box:size=4"}, ValueError, "filter 'box:size=4'"),
        ({"filters": []}, ValueError, "there is no filter"),
        ({"filters": 3}, TypeError, None),
        ({"filters": ["box:size=3", 3]}, TypeError, "a filter is a text or a framepipe.Mask, and not int"),
        ({"border": "nowhere"}, ValueError, "nowhere"),
        ({"planes": "q"}, ValueError, "'q' is no choice of planes"),
        ({"planes": "u"}, ValueError, "names a component that gray does not have"),
        ({"format": "rgb25"}, ValueError, "'rgb25' is not a pixel format"),
        ({"format": "yuv420p"}, ValueError, "keeps its components in 3 planes"),
        ({"format": "gray10le"}, ValueError, "samples of 16 bits, and the array's have 8"),
        ({"format": "rgb24"}, ValueError, "rgb24 has 3 samples a pixel, and the array 1"),
        ({"engine": "gpu"}, ValueError, "'gpu' is no engine; use auto, cpu, cuda or reference"),
        ({"threads": -1}, ValueError, "threads must be 0"),
        ({"threads": 10**9}, ValueError, "to 1024"),
        ({"out": np.zeros((4, 5), np.uint8)}, ValueError, r"out is of shape \(4, 5\)"),
        ({"out": np.zeros((4, 4), np.uint16)}, ValueError, "type uint16"),
        ({"out": [1]}, TypeError, "out must be a numpy.ndarray, and not list"),
    ],
)
def test_what_cannot_be_is_said(arguments, error, sentence):
    with pytest.raises(error, match=sentence):
        framepipe.filter(np.zeros((4, 4), np.uint8), **{"filters": FILTER} | arguments)


def test_a_read_only_result_is_refused_and_a_read_only_picture_is_not(noise):
    picture = noise(8, 9)
    picture.flags.writeable = False
    framepipe.filter(picture, FILTER)
    with pytest.raises(ValueError, match="out is read-only"):
        framepipe.filter(noise(8, 9), FILTER, out=picture)


@pytest.mark.parametrize("shape", [(5,), (2, 2, 2, 2, 3), ()])
def test_other_shapes_are_no_pictures(shape):
    with pytest.raises(ValueError, match="is no picture; give HxW, HxWxC or NxHxWxC"):
        framepipe.filter(np.zeros(shape, np.uint8), FILTER)


@pytest.mark.parametrize(
    "weights, divisor, sentence",
    [
        ([[1, 2], [3, 4]], None, "both sides must be odd"),
        (np.ones((65, 1), int), None, "the limit is 63x63"),
        ([[1, float("nan")]], None, "not a finite number"),
        ([[1, 2, 1]], 0, "divisor is zero"),
        ([[1, 0, -1]], "sum", "add up to zero"),
        ([1, 2, 1], None, r"a mask is a matrix of numbers, and this is an array of shape \(3,\)"),
        ([["a"]], None, "type <U1"),
    ],
)
def test_what_is_no_mask_is_said(weights, divisor, sentence):
    with pytest.raises(ValueError, match=sentence):
        framepipe.Mask(weights, divisor)


def test_threads_filter_side_by_side(noise):
    pictures = [noise(50 + i, 60) for i in range(8)]
    expected = [tight(picture) for picture in pictures]
    wrong = []

    def work(index):
        for _ in range(20):
            if not np.array_equal(framepipe.filter(pictures[index], FILTER, threads=2), expected[index]):
                wrong.append(index)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_interpreter_is_free_meanwhile(noise):
    picture = noise(200, 300)
    thread = threading.Thread(target=framepipe.filter, args=(picture, "gaussian:sigma=4"), kwargs={
        "engine": "reference"})
    thread.start()
    turns = 0
    while thread.is_alive():
        turns += 1
        time.sleep(0.001)
    assert turns > 5


def test_a_forked_process_filters_too(noise):
    picture = noise(64, 64)
    expected = framepipe.filter(picture, FILTER, threads=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        same = np.array_equal(framepipe.filter(picture, FILTER, threads=2), expected)
        os._exit(0 if same else 1)
    until = time.monotonic() + 30
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < until:
        time.sleep(0.01)
    if ended == (0, 0):
        os.kill(child, 9)
        os.waitpid(child, 0)
    assert ended == (child, 0)
    np.testing.assert_array_equal(framepipe.filter(picture, FILTER, threads=2), expected)
