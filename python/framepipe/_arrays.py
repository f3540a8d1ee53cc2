"""Arrays: which shapes and types there are, and which of them lie so that nothing need be copied."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _framepipe

Sample = TypeVar("Sample", np.uint8, np.uint16)
Engine: TypeAlias = Literal["auto", "cpu", "cuda", "reference"]

# What pixels of so many samples, of so many bytes each, are taken for.
_FORMATS = {
    (1, 1): "gray",
    (2, 1): "ya8",
    (3, 1): "rgb24",
    (4, 1): "rgba",
    (1, 2): "gray16le",
    (2, 2): "ya16le",
    (3, 2): "rgb48le",
    (4, 2): "rgba64le",
}

# Threads do not come along when a process forks.
os.register_at_fork(after_in_child=_framepipe.forget_idle)


class Mask:
    """A mask (convolution kernel) of your own, to be given where a filter is.

    `weights` is a matrix of integers or floats with odd sides, at most 63x63. Every sum is divided by
    `divisor`, a number or "sum" (the weights' sum), and `bias` is added, in levels of 8-bit pixels.
    Integers and decimals are kept exactly. The mask is not turned: this is a correlation, as with
    `scipy.ndimage.correlate` and OpenCV's `filter2D`.

    Raises `ValueError` where the matrix is no mask, in the program's words.

    >>> mask = framepipe.Mask([[1, 2, 1], [2, 4, 2], [1, 2, 1]], divisor=16)
    >>> mask
    Mask('mask:rows=1 2 1;2 4 2;1 2 1:divisor=16')
    >>> framepipe.filter(numpy.full((5, 5), 7, numpy.uint8), mask)[0, 0]
    np.uint8(7)
    """

    __slots__ = ("spec",)

    spec: str
    """The same in the program's words."""

    def __init__(
        self, weights: ArrayLike, divisor: float | Literal["sum"] | None = None, *, bias: float = 0
    ) -> None:
        matrix = np.asarray(weights)
        if matrix.ndim != 2 or matrix.dtype.kind not in "iuf":
            raise ValueError(
                f"a mask is a matrix of numbers, and this is an array of shape {matrix.shape} and type "
                f"{matrix.dtype}"
            )
        rows = ";".join(" ".join(map(str, row)) for row in matrix.tolist())
        parts = [f"mask:rows={rows}"]
        if divisor is not None:
            parts.append(f"divisor={divisor}")
        if bias != 0:
            parts.append(f"bias={bias}")
        self.spec = ":".join(parts)
        _framepipe.check_filters([self.spec])

    def __repr__(self) -> str:
        return f"Mask({self.spec!r})"


Filters: TypeAlias = str | Mask | Sequence[str | Mask]


def specs(filters: Filters) -> list[str]:
    """The filters in the program's words, in order."""
    each = [filters] if isinstance(filters, (str, Mask)) else list(filters)
    for item in each:
        if not isinstance(item, (str, Mask)):
            raise TypeError(f"a filter is a text or a framepipe.Mask, and not {type(item).__name__}")
    return [item.spec if isinstance(item, Mask) else item for item in each]


def masks() -> dict[str, str]:
    """The filters by name, each with a line of what it does. `framepipe masks` on the command line lists
    their numbers as well.

    >>> framepipe.masks()["sobel"]
    'edges of every direction: the magnitude of sobel-x and sobel-y'
    """
    return dict(_framepipe.masks())


def filter(
    array: NDArray[Sample],
    filters: Filters,
    *,
    border: str = "replicate",
    planes: str = "all",
    format: str | None = None,
    engine: Engine = "auto",
    threads: int = 0,
    out: NDArray[Sample] | None = None,
) -> NDArray[Sample]:
    """Filters a picture, or a batch of pictures.

    `array` is of `uint8` or `uint16` and of shape HxW, HxWxC or NxHxWxC. Pixels of two and four samples have
    alpha in the last one, which is copied, and by which colours are weighted; three samples are RGB (or BGR).
    Any other number of samples, and `format="gray"` or `"gray16le"` with any number, means pictures that are
    filtered each by itself. `format` may name any of FFmpeg's formats whose components lie side by side, such
    as "bgr24", or "gray10le" for samples of ten bits.

    `filters` is a filter such as "gaussian:sigma=2", several with commas, a `Mask`, or a sequence of these,
    which are applied in order. `border` says what is outside: replicate, zero, constant:V, reflect, mirror or
    wrap. `planes` chooses components: all, all+alpha, luma (of RGB, too), gray, or letters such as "rg".

    `engine` is "auto" or "cpu", "reference" (plain and slow), or "cuda" (an NVIDIA card); all give the same
    bits. `threads` of the CPU engine: 0 means one for each core. The interpreter is free meanwhile; nobody
    may write to `array` before the call is over.

    The result is a new array, or `out`, which must be of the same shape and type. Rows may be padded, and
    batches go backwards, without a copy. What lies otherwise (transposed, flipped) is copied first, as is
    `array` where it shares memory with `out`.

    Raises `TypeError` for other types, `ValueError` for shapes, filters, borders and formats that cannot be,
    `MemoryError`, and `framepipe.Error` where an engine cannot be started. A mask that is not quite what was
    requested is a `UserWarning`.

    >>> picture = numpy.arange(20, dtype=numpy.uint8).reshape(4, 5)
    >>> framepipe.filter(picture, "box:size=3", border="zero")
    array([[ 1,  2,  3,  4,  3],
           [ 4,  6,  7,  8,  6],
           [ 7, 11, 12, 13,  9],
           [ 6,  9, 10, 10,  7]], dtype=uint8)
    >>> edges = framepipe.filter(picture, ["gaussian:sigma=0.7", "laplacian8"])
    >>> framepipe.filter(picture / 255, "box:size=3")
    Traceback (most recent call last):
    TypeError: arrays of float64 are not filtered; convert them to integers first, ...
    """
    source = np.asarray(array)
    _check_type(source)
    names = specs(filters)
    pictures = _pictures(source)
    if out is None:
        result: NDArray[Any] = np.empty(source.shape, source.dtype.newbyteorder("="))
    else:
        result = out
        _check_out(result, source)
    settings = (names, border, planes, engine, threads)
    if 0 in pictures.shape:
        _check_empty(pictures, names)
        return result
    if np.may_share_memory(source, result):
        pictures = pictures.copy()
    word, is_apart = _format(pictures, format)
    if is_apart:
        _filter_apart(pictures, _pictures(result), word, settings)
    else:
        _filter_whole(pictures, _pictures(result), word, settings)
    return result


_Settings: TypeAlias = tuple[list[str], str, str, str, int]


def _check_type(array: NDArray[Any]) -> None:
    if array.dtype.kind == "u" and array.dtype.itemsize <= 2:
        return
    advice = {
        "f": "for values from 0 to 1: (array * 65535 + 0.5).astype(numpy.uint16)",
        "b": "such as array.astype(numpy.uint8) * 255",
        "i": "such as numpy.clip(array, 0, 65535).astype(numpy.uint16)",
        "u": "such as numpy.minimum(array, 65535).astype(numpy.uint16)",
    }.get(array.dtype.kind, "to numpy.uint8 or numpy.uint16")
    raise TypeError(f"arrays of {array.dtype} are not filtered; convert them to integers first, {advice}")


def _check_out(out: NDArray[Any], source: NDArray[Any]) -> None:
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out must be a numpy.ndarray, and not {type(out).__name__}")
    if out.shape != source.shape or out.dtype != source.dtype:
        raise ValueError(
            f"out is of shape {out.shape} and type {out.dtype}, and the result of shape {source.shape} and "
            f"type {source.dtype}"
        )
    if not out.flags.writeable:
        raise ValueError("out is read-only")


def _pictures(array: NDArray[Any]) -> NDArray[Any]:
    """A view with four axes: pictures, rows, pixels, samples."""
    if array.ndim == 2:
        return array[None, :, :, None]
    if array.ndim == 3:
        return array[None]
    if array.ndim == 4:
        return array[:]
    raise ValueError(f"an array of shape {array.shape} is no picture; give HxW, HxWxC or NxHxWxC")


def _check_empty(pictures: NDArray[Any], names: list[str]) -> None:
    """A batch of no pictures has a result; a picture of no pixels has none."""
    count, height, width, samples = pictures.shape
    if 0 in (height, width, samples):
        raise ValueError(f"a picture of {width}x{height} pixels of {samples} samples is empty")
    _warn(_framepipe.check_filters(names))


def _format(pictures: NDArray[Any], name: str | None) -> tuple[str, bool]:
    """The format's name, and whether each sample of a pixel belongs to a picture of its own."""
    samples, size = pictures.shape[3], pictures.itemsize
    if name is None:
        known = _FORMATS.get((samples, size))
        return known or _FORMATS[1, size], known is None
    of_format = _framepipe.channels_of(name, size)
    if of_format not in (1, samples):
        raise ValueError(f"{name} has {of_format} samples a pixel, and the array {samples}")
    most = _framepipe.largest_sample(name)
    if most < np.iinfo(pictures.dtype).max and (found := int(pictures.max())) > most:
        raise ValueError(f"the array has a sample of {found}, and {name} ends at {most}")
    return name, of_format != samples


def _is_direct(pictures: NDArray[Any]) -> bool:
    """True if samples stand side by side and rows from top to bottom, in this machine's order of bytes."""
    _, height, width, samples = pictures.shape
    _, row, pixel, sample = pictures.strides
    size = pictures.itemsize
    return (
        pictures.dtype.isnative
        and (samples == 1 or sample == size)
        and (width == 1 or pixel == samples * size)
        and (height == 1 or row >= width * samples * size)
    )


def _filter_whole(
    pictures: NDArray[Any], result: NDArray[Any], format: str, settings: _Settings
) -> None:
    native = pictures.dtype.newbyteorder("=")
    if not _is_direct(pictures):
        pictures = np.ascontiguousarray(pictures, native)
    target = result if _is_direct(result) else np.empty(result.shape, native)
    names, border, planes, engine, threads = settings
    remarks = _framepipe.filter_pictures(
        pictures,
        target,
        names,
        border=border,
        planes=planes,
        format=format,
        engine=engine,
        threads=threads,
    )
    if target is not result:
        result[...] = target
    if remarks:
        _warn(remarks)


def _filter_apart(
    pictures: NDArray[Any], result: NDArray[Any], format: str, settings: _Settings
) -> None:
    """Each sample of the pixels as a picture of its own."""
    count, height, width, samples = pictures.shape
    apart = np.ascontiguousarray(pictures.transpose(0, 3, 1, 2)).reshape(-1, height, width, 1)
    filtered = np.empty_like(apart, dtype=apart.dtype.newbyteorder("="))
    _filter_whole(apart, filtered, format, settings)
    result[...] = filtered.reshape(count, samples, height, width).transpose(0, 2, 3, 1)


def _warn(remarks: list[str]) -> None:
    for remark in remarks:
        warnings.warn(remark, stacklevel=4)
