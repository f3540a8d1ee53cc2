import os
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__version__: str
BORDERS: tuple[str, ...]
__all__ = [
    "BORDERS",
    "CardMemory",
    "Error",
    "Picture",
    "Reader",
    "Writer",
    "__version__",
    "card_of",
    "channels_of",
    "check_filters",
    "filter_on_card",
    "filter_pictures",
    "forget_idle",
    "largest_sample",
    "masks",
    "read_dlpack",
]

class Error(RuntimeError): ...

@final
class CardMemory:
    def __new__(cls, device: int, len: int) -> CardMemory: ...
    @property
    def device(self) -> int: ...
    @property
    def pointer(self) -> int: ...
    def after(self, offset: int) -> CardMemory: ...
    def to_dlpack(self, shape: list[int], strides: list[int], bits: int, is_float: bool) -> Any: ...

def card_of(pointer: int) -> int | None: ...
def channels_of(format: str, sample_bytes: int, is_float: bool) -> int: ...
def check_filters(filters: list[str]) -> list[str]: ...
def filter_on_card(
    source: tuple[int, int, int],
    target: tuple[int, int, int],
    shape: tuple[int, int, int],
    filters: list[str],
    *,
    border: str,
    planes: str,
    format: str,
    device: int,
    stream: int,
    wait: bool,
) -> list[str]: ...
def filter_pictures(
    source: NDArray[Any],
    target: NDArray[Any],
    filters: list[str],
    *,
    border: str,
    planes: str,
    format: str,
    engine: str,
    threads: int,
) -> list[str]: ...
def forget_idle() -> None: ...
def largest_sample(format: str) -> int: ...
def masks() -> list[tuple[str, str]]: ...
def read_dlpack(
    capsule: Any,
) -> tuple[tuple[int, int], int, list[int], list[int] | None, tuple[int, int, int]]: ...
@final
class Picture:
    @property
    def colour(self) -> tuple[str, int, int, int, int]: ...
    @property
    def data(self) -> bytearray | CardMemory: ...
    @property
    def duration(self) -> int | None: ...
    @property
    def file(self) -> os.PathLike[str] | None: ...
    @property
    def format(self) -> str: ...
    @property
    def index(self) -> int: ...
    @property
    def planes(self) -> list[tuple[int, int, int, int, int]]: ...
    @property
    def pts(self) -> int | None: ...
    def rgb_on_card(self) -> Picture: ...
    @property
    def sample_type(self) -> str: ...
    @property
    def size(self) -> tuple[int, int]: ...
    def store_rgb(self, data: NDArray[Any], rgb: NDArray[Any]) -> None: ...
    @property
    def time_base(self) -> tuple[int, int]: ...
    def with_rgb(self, rgb: bytes) -> Picture: ...

@final
class Reader:
    def __new__(
        cls,
        path: str | os.PathLike[str],
        filters: list[str],
        *,
        border: str,
        planes: str,
        start: str | None,
        end: str | None,
        engine: str,
        device: str,
        threads: int,
        format: str | None,
        strict: bool,
    ) -> Reader: ...
    @property
    def description(self) -> str: ...
    @property
    def format(self) -> str: ...
    @property
    def frames(self) -> int | None: ...
    @property
    def rate(self) -> tuple[int, int] | None: ...
    @property
    def size(self) -> tuple[int, int]: ...
    def close(self) -> None: ...
    def next(self) -> Picture | None: ...
    def take_warnings(self) -> list[str]: ...

@final
class Writer:
    def __new__(
        cls,
        path: str | os.PathLike[str],
        like: Reader,
        *,
        overwrite: bool,
        encoder: str | None,
        quality: float | None,
        preset: str | None,
        pixel_format: str | None,
        encoder_options: list[tuple[str, str]],
        copy_streams: bool,
        strict: bool,
    ) -> Writer: ...
    @property
    def is_open(self) -> bool: ...
    def abandon(self) -> None: ...
    def finish(self) -> tuple[str, list[str]]: ...
    def write(self, picture: Picture) -> None: ...
