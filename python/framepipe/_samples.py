"""Samples: of which types they are, and what pixels of so many of them are taken for."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from . import _framepipe

Sample = TypeVar("Sample", np.uint8, np.uint16, np.float32)

# What pixels of so many samples, of such a type each, are taken for, and a sample's largest value; 0 where
# there is none.
_TYPES: dict[np.dtype[Any], tuple[tuple[str, ...], int]] = {
    np.dtype(np.uint8): (("gray", "ya8", "rgb24", "rgba"), 255),
    np.dtype(np.uint16): (("gray16le", "ya16le", "rgb48le", "rgba64le"), 65535),
    np.dtype(np.float32): (("grayf32le", "yaf32le", "rgbf32le", "rgbaf32le"), 0),
}
_FORMATS = {dtype: formats for dtype, (formats, _) in _TYPES.items()}
LARGEST = {dtype: largest for dtype, (_, largest) in _TYPES.items()}
# In the other order of bytes, too.
_FORMATS |= {dtype.newbyteorder(): formats for dtype, formats in _FORMATS.items()}
LARGEST |= {dtype.newbyteorder(): largest for dtype, largest in LARGEST.items()}


def check_type(dtype: np.dtype[Any]) -> None:
    """Refuses types that are not filtered."""
    if dtype in _FORMATS:
        return
    advice = {
        "f": "such as array.astype(numpy.float32)",
        "b": "such as array.astype(numpy.uint8) * 255",
        "i": "such as numpy.clip(array, 0, 65535).astype(numpy.uint16)",
        "u": "such as numpy.minimum(array, 65535).astype(numpy.uint16)",
    }.get(dtype.kind, "to numpy.uint8 or numpy.uint16")
    raise TypeError(f"arrays of {dtype} are not filtered; convert them first, {advice}")


def check_type_on_card(dtype: np.dtype[Any]) -> None:
    """Refuses types that are not filtered on a card."""
    check_type(dtype)
    if not dtype.isnative:
        raise TypeError(f"arrays of {dtype}, the other order of bytes, are filtered on the host alone")


def format_of(samples: int, dtype: np.dtype[Any], name: str | None) -> tuple[str, bool, int]:
    """The format's name, whether each sample of a pixel belongs to a picture of its own, and the largest
    value of a sample."""
    known = _FORMATS[dtype]
    if name is None:
        is_apart = samples > len(known)
        return known[0 if is_apart else samples - 1], is_apart, LARGEST[dtype]
    of_format = _framepipe.channels_of(name, dtype.itemsize, dtype.kind == "f")
    if of_format not in (1, samples):
        raise ValueError(f"{name} has {of_format} samples a pixel, and the array {samples}")
    most = 0 if dtype.kind == "f" else _framepipe.largest_sample(name)
    return name, of_format != samples, most


def check_empty(shape: tuple[int, ...], names: list[str]) -> list[str]:
    """A batch of no pictures has a result; a picture of no pixels has none. Gives what there is to say of the
    masks."""
    _, height, width, samples = shape
    if 0 in (height, width, samples):
        raise ValueError(f"a picture of {width}x{height} pixels of {samples} samples is empty")
    return _framepipe.check_filters(names)
