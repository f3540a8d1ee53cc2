"""Arrays: which shapes and types there are, and which of them lie so that nothing need be copied."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, overload

import numpy as np
import numpy.ma as ma
from numpy.typing import ArrayLike, NDArray

from . import _card, _framepipe
from ._samples import LARGEST, Sample, check_empty, check_type, format_of

BORDERS: tuple[str, ...] = _framepipe.BORDERS
"""What may be assumed outside a picture."""

Engine: TypeAlias = Literal["auto", "cpu", "cuda", "reference"]

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
    if isinstance(filters, str):
        return [filters]
    each = [filters] if isinstance(filters, Mask) else list(filters)
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


@overload
def filter(
    array: NDArray[Sample],
    filters: Filters,
    *,
    border: str = ...,
    planes: str = ...,
    format: str | None = ...,
    engine: Engine = ...,
    threads: int = ...,
    out: NDArray[Sample] | None = ...,
) -> NDArray[Sample]: ...
@overload
def filter(
    array: _card.HandsOver,
    filters: Filters,
    *,
    border: str = ...,
    planes: str = ...,
    format: str | None = ...,
    engine: Engine = ...,
    threads: int = ...,
    out: Any = ...,
) -> Any: ...
def filter(
    array: Any,
    filters: Filters,
    *,
    border: str = "replicate",
    planes: str = "all",
    format: str | None = None,
    engine: Engine = "auto",
    threads: int = 0,
    out: Any = None,
) -> Any:
    """Filters a picture, or a batch of pictures.

    `array` is of `uint8`, `uint16` or `float32` and of shape HxW, HxWxC or NxHxWxC. Pixels of two and four
    samples have alpha in the last one, which is copied, and by which colours are weighted; three samples are
    RGB (or BGR).
    Any other number of samples, and `format="gray"` or `"gray16le"` with any number, means pictures that are
    filtered each by itself. Floats are not clamped; 1.0 is white. `format` names a pixel format of the
    program whose components lie side by side, such as "bgr24", or "gray10le" for samples of ten bits.

    `filters` is a filter such as "gaussian:sigma=2", several with commas, a `Mask`, or a sequence of these,
    which are applied in order. `border` says what is outside, in a word of `BORDERS`, whose constant may have
    any level from 0 (black) to 255 (white). `planes` chooses components: all, all+alpha, luma (of RGB, too),
    gray, or letters such as "rg".

    `engine` is "auto" or "cpu", "reference" (plain and slow), or "cuda" (an NVIDIA card); all give the same
    bits. `threads` of the CPU engine: 0 means one for each core. The interpreter is free meanwhile; nobody
    may write to `array` before the call is over.

    The result is a new array, or `out`, which must be of the same shape and type. Rows may be padded, and
    batches go backwards, without a copy. What lies otherwise (transposed, flipped) is copied first, as is
    `array` where it shares memory with `out`.

    Arrays of other libraries that have `__dlpack__` or `__cuda_array_interface__`, such as tensors of
    PyTorch, are taken where they lie, and the result is of the same kind. On an NVIDIA card they are filtered
    there, after what was enqueued before on the current stream of PyTorch or CuPy, which the call does not
    wait for; for other libraries it waits. `threads` says nothing then; luma of RGB, and formats with fewer
    bits than samples have, are for arrays of the host.

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
    TypeError: arrays of float64 are not filtered; convert them first, ...
    """
    names = specs(filters)
    settings = (border, planes, format, engine, threads)
    if isinstance(array, np.ndarray):
        result, remarks = _filter(_plain(array), names, settings, out)
    elif _card.is_on_card(array):
        result, remarks = _card.filter(array, names, (border, planes, format, engine), out)
    else:
        result, remarks = _filter_foreign(array, names, settings, out)
    if out is not None:
        result = out
    for remark in remarks:
        warnings.warn(remark, stacklevel=2)
    return result


_Settings: TypeAlias = tuple[str, str, str | None, str, int]


def _filter(
    source: NDArray[Any], names: list[str], settings: _Settings, out: NDArray[Any] | None
) -> tuple[NDArray[Any], list[str]]:
    """The result, and what there is to say of the masks."""
    check_type(source.dtype)
    pictures = _pictures(source)
    if out is None:
        result: NDArray[Any] = np.empty(source.shape, source.dtype.newbyteorder("="))
    else:
        _check_out(out, source)
        result = _plain(out)
    if 0 in pictures.shape:
        return result, check_empty(pictures.shape, names)
    if out is not None and np.may_share_memory(source, out):
        pictures = pictures.copy()
    border, planes, format, engine, threads = settings
    word, is_apart, most = format_of(pictures.shape[3], pictures.dtype, format)
    if most < LARGEST[pictures.dtype] and (found := int(pictures.max())) > most:
        raise ValueError(f"the array has a sample of {found}, and {word} ends at {most}")
    whole = _filter_apart if is_apart else _filter_whole
    return result, whole(pictures, _pictures(result), names, (border, planes, word, engine, threads))


def _filter_foreign(
    array: Any, names: list[str], settings: _Settings, out: Any
) -> tuple[Any, list[str]]:
    """An array of another library in the host's memory: what comes back is of that library, if it takes
    arrays by DLPack."""
    target = None if out is None else _shared(out)
    result, remarks = _filter(_as_numpy(array), names, settings, target)
    if out is not None:
        return result, remarks
    namespace = getattr(array, "__array_namespace__", None)
    module = sys.modules.get(type(array).__module__.partition(".")[0]) if namespace is None else namespace()
    from_dlpack = getattr(module, "from_dlpack", None) if hasattr(array, "__dlpack__") else None
    return result if from_dlpack is None else from_dlpack(result), remarks


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """The same memory without what a subclass of arrays adds, such as the file of a `memmap`."""
    if isinstance(array, ma.MaskedArray):
        raise TypeError("masked arrays are not filtered; fill them, or filter their data")
    return np.asarray(array)


def _as_numpy(array: Any) -> NDArray[Any]:
    """The same memory as an array of NumPy."""
    if hasattr(array, "__dlpack__") and not hasattr(array, "__array__"):
        return np.from_dlpack(array)
    return np.asarray(array)


def _shared(out: Any) -> NDArray[Any]:
    """The memory of `out` as an array of NumPy. That of a file, as h5py's, is a new copy each time."""
    target = _as_numpy(out)
    if target.size and not np.may_share_memory(target, _as_numpy(out)):
        raise TypeError(f"NumPy sees a copy of {type(out).__name__} alone; give an array in memory as out")
    return target


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
    pictures: NDArray[Any], result: NDArray[Any], names: list[str], settings: tuple[str, str, str, str, int]
) -> list[str]:
    if not _is_direct(pictures):
        pictures = np.ascontiguousarray(pictures, pictures.dtype.newbyteorder("="))
    target = result if _is_direct(result) else np.empty(result.shape, pictures.dtype)
    border, planes, format, engine, threads = settings
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
    return remarks


def _filter_apart(
    pictures: NDArray[Any], result: NDArray[Any], names: list[str], settings: tuple[str, str, str, str, int]
) -> list[str]:
    """Each sample of the pixels as a picture of its own."""
    count, height, width, samples = pictures.shape
    apart = np.ascontiguousarray(pictures.transpose(0, 3, 1, 2)).reshape(-1, height, width, 1)
    filtered = np.empty_like(apart, dtype=apart.dtype.newbyteorder("="))
    remarks = _filter_whole(apart, filtered, names, settings)
    result[...] = filtered.reshape(count, samples, height, width).transpose(0, 2, 3, 1)
    return remarks
