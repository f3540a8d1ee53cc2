"""Arrays on an NVIDIA card: where they lie, on whose stream they are filtered, and what kind comes back.

A library hands over an array by `__cuda_array_interface__`, or by DLPack (`__dlpack__`). PyTorch and CuPy are
known: their arrays are filtered on their current stream, as their own functions would, and results lie in
memory of theirs. For others the call waits until the result is there.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, final

import numpy as np

from . import _framepipe
from ._samples import LARGEST, check_empty, check_type_on_card, format_of

# Kinds of devices in DLPack's numbers: a card's memory, and memory that the driver moves to and from it.
_ON_CARD = (2, 13)

# Letters of NumPy for DLPack's codes of types.
_KINDS = {0: "i", 1: "u", 2: "f", 6: "b"}

# The driver's stream that waits for all others.
_DEFAULT_STREAM = 1


class HandsOver(Protocol):
    """An array that other libraries can take where it lies."""

    def __dlpack_device__(self) -> tuple[Any, Any]: ...


def is_on_card(array: Any) -> bool:
    """True if the array lies in a card's memory."""
    if (where := getattr(array, "__dlpack_device__", None)) is not None:
        return where()[0] in _ON_CARD
    return hasattr(array, "__cuda_array_interface__")


@final
class CardArray:
    """An array in the memory of an NVIDIA card, which other libraries take without a copy: by
    `__cuda_array_interface__` and `__dlpack__`, so with `cupy.asarray`, `torch.as_tensor` or `from_dlpack`.
    Results are of this kind where the array's own library is not known.
    """

    __slots__ = ("_memory", "dtype", "shape", "strides")

    def __init__(self, memory: _framepipe.CardMemory, view: _View) -> None:
        self._memory = memory
        self.shape = view.shape
        self.strides = view.strides
        self.dtype = view.dtype

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "strides": self.strides,
            "typestr": self.dtype.str,
            "data": (self._memory.pointer, False),
            "version": 3,
            # What filled it is done.
            "stream": None,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return (_ON_CARD[0], self._memory.device)

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if dl_device not in (None, self.__dlpack_device__()) or copy:
            raise BufferError("the array is handed over where it lies, without a copy")
        strides = [stride // self.dtype.itemsize for stride in self.strides]
        is_float = self.dtype.kind == "f"
        return self._memory.to_dlpack(list(self.shape), strides, 8 * self.dtype.itemsize, is_float)

    def __repr__(self) -> str:
        return f"<framepipe.CardArray of {self.dtype} {self.shape} on card {self._memory.device}>"


class _Pictures(NamedTuple):
    """Shape and strides with four axes: pictures, rows, pixels, samples."""

    shape: tuple[int, int, int, int]
    strides: tuple[int, int, int, int]


# Made several times a call, and so no dataclass: those that are frozen take microseconds to make.
@final
class _View:
    """Where an array lies, as it says itself; strides in bytes. `holds` must be held while it is used."""

    __slots__ = (
        "_pictures", "device", "dtype", "holds", "is_writable", "pointer", "shape", "stream", "strides",
    )

    def __init__(
        self,
        pointer: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: np.dtype[Any],
        device: int,
        stream: int,
        is_writable: bool,
        holds: object = None,
    ) -> None:
        self.pointer = pointer
        self.shape = shape
        self.strides = strides
        self.dtype = dtype
        self.device = device
        self.stream = stream
        self.is_writable = is_writable
        self.holds = holds
        self._pictures: _Pictures | None = None

    def at(self, pointer: int, strides: tuple[int, ...], holds: object = None) -> _View:
        """An array like this one in other memory that can be written to."""
        return _View(pointer, self.shape, strides, self.dtype, self.device, self.stream, True, holds)

    @property
    def pictures(self) -> _Pictures:
        """With four axes."""
        if self._pictures is None:
            shape, strides = self.shape, self.strides
            if len(shape) == 2:
                shape, strides = (1, *shape, 1), (0, *strides, self.dtype.itemsize)
            elif len(shape) == 3:
                shape, strides = (1, *shape), (0, *strides)
            if len(shape) != 4 or len(strides) != 4:
                raise ValueError(f"an array of shape {self.shape} is no picture; give HxW, HxWxC or NxHxWxC")
            self._pictures = _Pictures(shape, strides)
        return self._pictures

    @property
    def extent(self) -> tuple[int, int]:
        """The first byte's address, and that behind the last one's."""
        steps = [(n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True)]
        first = self.pointer + sum(step for step in steps if step < 0)
        last = self.pointer + sum(step for step in steps if step > 0) + self.dtype.itemsize
        return first, last

    def has_rows(self, samples: int) -> bool:
        """True if, of its pictures, rows go down and in them so many samples a pixel stand side by side."""
        (_, height, width, count), (_, row, pixel, sample) = self.pictures
        size = self.dtype.itemsize
        return (
            (samples == 1 or sample == size)
            and (width == 1 or pixel == samples * size)
            and (height == 1 or row >= width * samples * size)
            and (samples == 1 or samples == count)
        )


def part(
    memory: _framepipe.CardMemory,
    offset: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dtype: np.dtype[Any],
) -> CardArray:
    """The array that begins at a byte of this memory; strides in bytes."""
    rest = memory.after(offset)
    return CardArray(rest, _View(rest.pointer, shape, strides, dtype, rest.device, _DEFAULT_STREAM, True))


def _tight(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    strides = []
    for count in reversed(shape):
        strides.append(size)
        size *= count
    return tuple(reversed(strides))


def _view(array: Any, library: _Library | None) -> _View:
    """Where any array lies on a card."""
    if library is not None:
        return library.view(array)
    interface = getattr(array, "__cuda_array_interface__", None)
    return _by_dlpack(array) if interface is None else _by_interface(interface, None)


def _by_interface(interface: dict[str, Any], stream: int | None) -> _View:
    if interface.get("mask") is not None:
        raise ValueError("arrays with a mask of their own are not filtered")
    is_read_only = interface["data"][1]
    dtype = np.dtype(interface["typestr"])
    shape = tuple(interface["shape"])
    pointer, strides = _place(interface)
    # Of an empty array nobody asks where it lies.
    device = _framepipe.card_of(pointer) if 0 not in shape else 0
    if device is None:
        raise ValueError(f"the array's address, {pointer:#x}, is none of a card's memory")
    if stream is None:
        stream = interface.get("stream") or _DEFAULT_STREAM
    return _View(pointer, shape, strides, dtype, device, stream, not is_read_only)


def _place(interface: dict[str, Any]) -> tuple[int, tuple[int, ...]]:
    """The address and the strides of an array."""
    strides = interface.get("strides")
    if strides is None:
        strides = _tight(tuple(interface["shape"]), np.dtype(interface["typestr"]).itemsize)
    return interface["data"][0], tuple(strides)


def _by_dlpack(array: Any) -> _View:
    # What makes the array is done before what that stream does next.
    capsule = array.__dlpack__(stream=_DEFAULT_STREAM)
    (_, device), pointer, shape, strides, (code, bits, lanes) = _framepipe.read_dlpack(capsule)
    if code not in _KINDS or bits % 8 != 0 or lanes != 1:
        raise TypeError(f"arrays of DLPack's type {code} with {bits} bits are not filtered")
    dtype = np.dtype(f"{_KINDS[code]}{bits // 8}")
    size = dtype.itemsize
    in_bytes = _tight(tuple(shape), size) if strides is None else tuple(size * s for s in strides)
    return _View(pointer, tuple(shape), in_bytes, dtype, device, _DEFAULT_STREAM, True, capsule)


@dataclass(frozen=True)
class _Library:
    """What is needed of a library whose arrays are filtered as it would itself: on its current stream, with
    its own memory."""

    module: Any
    view: Callable[[Any], _View]
    # The address and the strides in bytes of an array that the library has just made.
    place: Callable[[Any], tuple[int, tuple[int, ...]]]
    # A copy without gaps, its last axis the fastest.
    tight_copy: Callable[[Any], Any]

    def copy(self, array: Any, is_apart: bool) -> Any:
        """A copy whose samples, or those of each component, lie side by side."""
        if not is_apart or array.ndim == 2:
            return self.tight_copy(array)
        moveaxis = self.module.moveaxis
        return moveaxis(self.tight_copy(moveaxis(array, -1, -3)), -3, -1)


# By name; a module may have been loaded anew since.
_LIBRARIES: dict[str, _Library] = {}


def _library(array: Any) -> _Library | None:
    root = type(array).__module__.partition(".")[0]
    if root not in ("torch", "cupy"):
        return None
    module, known = sys.modules.get(root), _LIBRARIES.get(root)
    if known is None or known.module is not module:
        known = _LIBRARIES[root] = _of_module(root, module)
    return known


def _of_module(root: str, module: Any) -> _Library:
    if root == "torch":
        return _Library(
            module,
            lambda tensor: _of_torch(tensor, module),
            lambda tensor: (tensor.data_ptr(), _strides_of_torch(tensor, tensor.element_size())),
            lambda tensor: tensor.clone(memory_format=module.contiguous_format),
        )
    return _Library(
        module,
        lambda array: _of_cupy(array, module),
        lambda array: _place(array.__cuda_array_interface__),
        lambda array: array.copy(order="C"),
    )


# NumPy's types of PyTorch's.
_TYPES_OF_TORCH: dict[Any, np.dtype[Any]] = {}


def _of_torch(tensor: Any, torch: Any) -> _View:
    if tensor.requires_grad:
        raise ValueError("filters have no gradient; give tensor.detach()")
    dtype = _TYPES_OF_TORCH.get(tensor.dtype)
    if dtype is None:
        # Of torch.uint8 and the like the name is NumPy's.
        name = str(tensor.dtype).partition(".")[2]
        try:
            dtype = _TYPES_OF_TORCH[tensor.dtype] = np.dtype(name)
        except TypeError:
            raise TypeError(f"tensors of {name} are not filtered; convert them to uint8 first") from None
    device = tensor.device
    stream = torch.cuda.current_stream(device).cuda_stream
    strides = _strides_of_torch(tensor, dtype.itemsize)
    return _View(tensor.data_ptr(), tuple(tensor.shape), strides, dtype, device.index, stream, True)


def _strides_of_torch(tensor: Any, size: int) -> tuple[int, ...]:
    """In bytes."""
    strides: tuple[int, ...] = tensor.stride()
    return strides if size == 1 else tuple([stride * size for stride in strides])


def _of_cupy(array: Any, cupy: Any) -> _View:
    interface = array.__cuda_array_interface__
    with array.device:
        return _by_interface(interface, cupy.cuda.get_current_stream().ptr)


def filter(
    array: Any, names: list[str], settings: tuple[str, str, str | None, str], out: Any
) -> tuple[Any, list[str]]:
    """`framepipe.filter` for an array on a card: the result, and what there is to say of the masks."""
    border, planes, format, engine = settings
    if engine not in ("auto", "cuda", "cpu", "reference"):
        raise ValueError(f"{engine!r} is no engine; use auto, cpu, cuda or reference")
    if engine not in ("auto", "cuda"):
        raise ValueError(f"the array lies on a card, and engine={engine!r} filters in the host's memory")
    library = _library(array)
    source = _view(array, library)
    check_type_on_card(source.dtype)
    pictures = source.pictures
    given = None if out is None else _check_out(out, source)
    if 0 in source.shape:
        remarks = check_empty(pictures.shape, names)
        return out if out is not None else _new(array, library, source, False)[0], remarks
    samples = pictures.shape[3]
    word, is_apart, most = format_of(samples, source.dtype, format)
    if most < LARGEST[source.dtype]:
        raise ValueError(
            f"samples of {word} end at {most}, which is not checked on a card; filter the array on the host"
        )
    if samples == 3 and planes in ("all", "all+alpha") and not source.has_rows(3) and source.has_rows(1):
        # Three planes side by side, as tensors often have them, are three gray pictures.
        word, is_apart = format_of(1, source.dtype, None)[0], True
    group = 1 if is_apart else samples
    overlaps = given is not None and given.extent[0] < source.extent[1] and source.extent[0] < given.extent[1]
    if overlaps or not source.has_rows(group):
        if library is None:
            raise ValueError(_why(overlaps, group, source))
        array = library.copy(array, is_apart)
        source = library.view(array)
    result, view = out, given
    if view is None or not view.has_rows(group):
        if given is not None and library is None:
            raise ValueError(_why(False, group, given))
        result, view = _new(array, library, source, is_apart)
    remarks = _enqueue(source, view, group, names, (border, planes, word), library is None)
    if out is None:
        return _as_kind_of(array, result) if library is None else result, remarks
    if result is not out:
        out[...] = result
    return out, remarks


def _check_out(out: Any, source: _View) -> _View:
    if not is_on_card(out):
        kind = type(out).__name__
        raise TypeError(f"out must lie on the card, as the array does, and this {kind} does not")
    view = _view(out, _library(out))
    if (view.shape, view.dtype, view.device) != (source.shape, source.dtype, source.device):
        raise ValueError(
            f"out is of shape {view.shape} and type {view.dtype}, on card {view.device}, and the result of "
            f"shape {source.shape} and type {source.dtype}, on card {source.device}"
        )
    if not view.is_writable:
        raise ValueError("out is read-only")
    return view


def _why(overlaps: bool, group: int, view: _View) -> str:
    if overlaps:
        return "out shares memory with the array; on a card the result needs memory of its own"
    what = "pixels" if group > 1 else "samples of a component"
    return (
        f"on a card the {what} of a row must lie side by side, and rows go down; this array has shape "
        f"{view.shape} and strides of {view.strides} bytes: make a copy first"
    )


def _new(array: Any, library: _Library | None, like: _View, is_apart: bool) -> tuple[Any, _View]:
    """A new array in the card's memory, and where it lies."""
    size = like.dtype.itemsize
    if library is not None:
        result = library.module.empty_like(array)
        view = like.at(*library.place(result))
        group = 1 if is_apart else view.pictures.shape[3]
        if not view.has_rows(group):
            result = library.copy(result, is_apart)
            view = like.at(*library.place(result))
        return result, view
    shape = like.shape
    if is_apart and len(shape) > 2:
        *before, height, width, samples = shape
        *outer, plane, row, pixel = _tight((*before, samples, height, width), size)
        strides = (*outer, row, pixel, plane)
    else:
        strides = _tight(shape, size)
    memory = _framepipe.CardMemory(like.device, size * math.prod(shape))
    view = like.at(memory.pointer, strides, memory)
    return CardArray(memory, view), view


def _enqueue(
    source: _View, target: _View, group: int, names: list[str], settings: tuple[str, str, str], wait: bool
) -> list[str]:
    """Filters pictures whose rows have so many samples a pixel."""
    count, height, width, samples = source.pictures.shape
    border, planes, format = settings

    def place(view: _View, component: int) -> tuple[int, int, int]:
        picture, row, _, sample = view.pictures.strides
        # Along an axis of one there is no next.
        return (
            view.pointer + component * sample,
            picture if count > 1 else 0,
            row if height > 1 else width * group * view.dtype.itemsize,
        )

    remarks: list[str] = []
    for component in range(samples // group):
        remarks = _framepipe.filter_on_card(
            place(source, component),
            place(target, component),
            (count, height, width),
            names,
            border=border,
            planes=planes,
            format=format,
            device=source.device,
            stream=source.stream,
            wait=wait,
        )
    return remarks


def _as_kind_of(array: Any, result: CardArray) -> Any:
    """The result as an array of the library that `array` is of, if that can be found out."""
    namespace = getattr(array, "__array_namespace__", None)
    from_dlpack = getattr(namespace(), "from_dlpack", None) if namespace is not None else None
    return result if from_dlpack is None else from_dlpack(result)
