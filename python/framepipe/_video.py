"""Videos and image sequences, frame by frame."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Mapping
from fractions import Fraction
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import _framepipe
from ._arrays import Engine, Filters, specs
from ._card import is_on_card, part


class Colour(NamedTuple):
    """What a stream says of its colours, by the numbers of ITU-T H.273, where 2 means "not stated"."""

    range: str
    """"limited" or "full": what stands for black and white."""
    primaries: int
    transfer: int
    matrix: int
    chroma_location: int
    """As FFmpeg numbers it; 0 means "not stated"."""


class Frame:
    """A picture of a stream, with its samples in memory of its own: the host's, or a card's if the reader was
    opened for one.

    >>> with framepipe.open("samples/clip-720p.mp4") as reader:
    ...     frame = next(reader)
    >>> frame
    <framepipe.Frame 0: 1280x720 yuv420p at 0 s>
    >>> [plane.shape for plane in frame.planes]
    [(720, 1280), (360, 640), (360, 640)]
    >>> frame.to_rgb().shape
    (720, 1280, 3)
    """

    __slots__ = ("_picture", "_planes")

    def __init__(self, picture: _framepipe.Picture) -> None:
        self._picture = picture
        self._planes: tuple[Any, ...] | None = None

    @property
    def planes(self) -> tuple[Any, ...]:
        """The planes as they are stored: HxW, or HxWxC where components lie side by side, of `uint8` up to
        eight bits and `uint16` beyond, or of `float16` or `float32` where samples are such. They are views:
        what is stored in them is what `Writer.write` writes.

        On the host they are arrays of NumPy. On a card they are `framepipe.CardArray`, which
        `torch.from_dlpack` and `cupy.from_dlpack` take where they lie; the samples are there already, on
        whatever stream they are used.
        """
        if self._planes is None:
            data = self._picture.data
            dtype = np.dtype(self._picture.sample_type)
            size = dtype.itemsize
            planes: list[Any] = []
            for offset, height, width, samples, stride in self._picture.planes:
                shape = (height, width) if samples == 1 else (height, width, samples)
                if isinstance(data, bytearray):
                    count = height * width * samples
                    planes.append(np.frombuffer(data, dtype, count, offset).reshape(shape))
                    continue
                strides = (stride, size) if samples == 1 else (stride, samples * size, size)
                planes.append(part(data, offset, shape, strides, dtype))
            self._planes = tuple(planes)
        return self._planes

    @property
    def device(self) -> str:
        """Where the samples lie: "cpu", or a card such as "cuda:0"."""
        data = self._picture.data
        return "cpu" if isinstance(data, bytearray) else f"cuda:{data.device}"

    def to_rgb(self) -> Any:
        """The picture as HxWx3, of `uint8`, or `uint16` at full scale where samples have more than eight
        bits. Colours are converted by the frame's matrix and range; alpha is left out.

        It is new, and lies where the frame does, by whose processor or card colours are converted, with the
        same bits (docs/arithmetic.md, "RGB of frames"): an array of NumPy, or a `framepipe.CardArray` as
        `planes` has them, which is there already on whatever stream it is used. Once `planes` of a frame on a
        card were asked for, they may be written to, and what is in the card's queues is waited for.

        Raises `framepipe.Error` where the matrix is one that cannot be converted, and `ValueError` where
        samples are floating-point numbers.
        """
        data = self._picture.data
        if not isinstance(data, bytearray):
            return Frame(self._picture.rgb_on_card()).planes[0]
        rgb = np.empty((self.height, self.width, 3), self._sample_type())
        self._picture.store_rgb(np.frombuffer(data, np.uint8).reshape(1, 1, -1, 1), rgb[np.newaxis])
        return rgb

    def with_rgb(self, rgb: NDArray[Any]) -> Frame:
        """Another frame with these colours, in this one's format, and with its alpha, time and facts.

        `rgb` is HxWx3 of this frame's size, of the type that `to_rgb` gives, in the host's memory; so is the
        new frame.

        Raises `ValueError` for another shape or type, and `TypeError` for an array on a card.

        >>> with framepipe.open("samples/clip-720p.mp4") as reader:
        ...     frame = next(reader)
        >>> frame.with_rgb(255 - frame.to_rgb())
        <framepipe.Frame 0: 1280x720 yuv420p at 0 s>
        """
        if is_on_card(rgb):
            raise TypeError("the array lies on a card, and frames are made of arrays in the host's memory")
        dtype = self._sample_type()
        expected = (self.height, self.width, 3)
        if rgb.shape != expected or rgb.dtype != dtype:
            raise ValueError(
                f"the frame takes an array of shape {expected} and type {dtype}, and this is of shape "
                f"{rgb.shape} and type {rgb.dtype}"
            )
        return Frame(self._picture.with_rgb(rgb.astype(dtype.newbyteorder("<")).tobytes()))

    def _sample_type(self) -> np.dtype[Any]:
        """The type of samples, in this machine's order of bytes."""
        return np.dtype(self._picture.sample_type).newbyteorder("=")

    @property
    def format(self) -> str:
        """FFmpeg's name of the pixel format."""
        return self._picture.format

    @property
    def width(self) -> int:
        """Pixels across."""
        return self._picture.size[0]

    @property
    def height(self) -> int:
        """Rows."""
        return self._picture.size[1]

    @property
    def index(self) -> int:
        """Its number among the frames of its reader, counted from 0."""
        return self._picture.index

    @property
    def pts(self) -> int | None:
        """When it is shown, in ticks of `time_base`; of a range, counted from where that begins."""
        return self._picture.pts

    @property
    def duration(self) -> int | None:
        """How long it is shown, in ticks of `time_base`."""
        return self._picture.duration

    @property
    def time_base(self) -> Fraction:
        """Seconds that a tick stands for."""
        return Fraction(*self._picture.time_base)

    @property
    def time(self) -> float | None:
        """When it is shown, in seconds."""
        return None if self.pts is None else float(self.pts * self.time_base)

    @property
    def colour(self) -> Colour:
        """What is known of its colours."""
        return Colour(*self._picture.colour)

    @property
    def file(self) -> os.PathLike[str] | None:
        """The image file that it was read from."""
        return self._picture.file

    def __repr__(self) -> str:
        time = "" if self.time is None else f" at {self.time:g} s"
        return f"<framepipe.Frame {self.index}: {self.width}x{self.height} {self.format}{time}>"


class Reader:
    """Frames in order, from `framepipe.open`. Iterate over it; leave it by `with` or `close`."""

    def __init__(self, reader: _framepipe.Reader) -> None:
        self._reader = reader
        self._is_closed = False
        # The caller is that of `open`.
        self._warn(4)

    @property
    def format(self) -> str:
        """FFmpeg's name of the frames' pixel format."""
        return self._reader.format

    @property
    def width(self) -> int:
        """Pixels across the first frame."""
        return self._reader.size[0]

    @property
    def height(self) -> int:
        """Rows of the first frame."""
        return self._reader.size[1]

    @property
    def rate(self) -> Fraction | None:
        """Nominal frames a second; `None` for image files."""
        return None if self._reader.rate is None else Fraction(*self._reader.rate)

    @property
    def frames(self) -> int | None:
        """About how many frames will come: the number that the input states, or its length times its rate.
        `None` where neither is known."""
        return self._reader.frames

    @property
    def description(self) -> str:
        """What is read, and how, in words."""
        return self._reader.description

    def close(self) -> None:
        """Ends the reading; to ask for a frame then is a `ValueError`. Nothing happens if it is closed."""
        self._is_closed = True
        self._reader.close()

    def __iter__(self) -> Reader:
        return self

    def __next__(self) -> Frame:
        if self._is_closed:
            raise ValueError("the reader is closed; framepipe.open opens another")
        picture = self._reader.next()
        if picture is None:
            self._warn(3)
            raise StopIteration
        return Frame(picture)

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _warn(self, level: int) -> None:
        for warning in self._reader.take_warnings():
            warnings.warn(warning, stacklevel=level)


class Writer:
    """A video file that grows by a frame at a time, from `framepipe.write`. It gets its name when it is
    closed; leaving `with` by an exception leaves nothing."""

    def __init__(self, writer: _framepipe.Writer) -> None:
        self._writer = writer
        self._description: str | None = None

    @property
    def description(self) -> str | None:
        """What was written, and how, in words, once it is closed."""
        return self._description

    def write(self, frame: Frame) -> None:
        """Encodes a frame of the size and format of the reader's, at its own time. Waits while the encoder is
        busy.

        Raises `framepipe.Error` or `OSError` where it cannot be written; nothing is left of the file then.
        """
        if not isinstance(frame, Frame):
            raise TypeError(
                f"frames are written, and this is {type(frame).__name__}; `with_rgb` makes a frame of an "
                "array"
            )
        self._writer.write(frame._picture)

    def close(self) -> None:
        """Finishes the file and gives it its name. Nothing happens if that was done."""
        self._finish(3)

    def _finish(self, level: int) -> None:
        if not self._writer.is_open:
            return
        self._description, remarks = self._writer.finish()
        for remark in remarks:
            warnings.warn(remark, stacklevel=level)

    def abandon(self) -> None:
        """Leaves nothing under the file's name."""
        self._writer.abandon()

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._finish(3)
        else:
            self.abandon()

    def __del__(self) -> None:
        writer = getattr(self, "_writer", None)
        if writer is not None and writer.is_open:
            warnings.warn("a framepipe.Writer was not closed; its file is left out", ResourceWarning)
            writer.abandon()


def _point(value: str | float | None) -> str | None:
    """A place in a stream as the library reads it. The nanosecond that a number lies in begins at a frame's
    `time` or just before it."""
    if isinstance(value, float) and math.isfinite(value) and value >= 0:
        seconds, nanoseconds = divmod(math.floor(value * 1e9), 10**9)
        return f"{seconds}.{nanoseconds:09d}"
    return None if value is None else str(value)


def open(
    path: str | os.PathLike[str],
    *,
    filters: Filters = (),
    border: str = "replicate",
    planes: str = "all",
    start: str | float | None = None,
    end: str | float | None = None,
    engine: Engine = "auto",
    device: str = "auto",
    threads: int = 0,
    format: str | None = None,
    strict: bool = False,
) -> Reader:
    """Reads a video, an animation, an image, a folder of images or a pattern such as "frames/%05d.png".

    Frames are decoded and filtered on other threads, a few ahead, while the loop works on the last one; a
    slow loop makes them wait, so that memory does not grow. `start` and `end` are seconds, clocks such as
    "1:02.5", or frames such as "120f". `format` has the frames converted, such as to "rgb24". `filters`,
    `border`, `planes`, `engine` ("auto" is the CPU) and `threads` are those of `framepipe.filter`.

    `device` is where the frames are to lie: "auto" and "cpu" for the host's memory; "cuda", or "cuda:1" for
    another card, for that of an NVIDIA card, where they are filtered and stay, and where long videos in
    H.264, HEVC, VP9 and the like are decoded. The rest is decoded by the processor and uploaded.

    Damage is concealed where it can be, and reported as a `UserWarning` behind the last frame; `strict` makes
    it an error. Raises `OSError` where a file cannot be read, `ValueError` for filters, places and formats
    that cannot be, and `framepipe.Error` for files that are none.

    >>> clip = "samples/clip-720p.mp4"
    >>> with framepipe.open(clip, filters="gaussian:sigma=3", start=0.2, end="9f") as reader:
    ...     for frame in reader:
    ...         print(frame.index, frame.pts, round(float(frame.planes[0].mean())))
    0 0 114
    1 512 114
    2 1024 115
    3 1536 115
    """
    reader = _framepipe.Reader(
        os.fspath(path),
        specs(filters),
        border=border,
        planes=planes,
        start=_point(start),
        end=_point(end),
        engine=engine,
        device=device,
        threads=threads,
        format=format,
        strict=strict,
    )
    return Reader(reader)


def write(
    path: str | os.PathLike[str],
    *,
    like: Reader,
    overwrite: bool = False,
    encoder: str | None = None,
    quality: float | None = None,
    preset: str | None = None,
    pixel_format: str | None = None,
    encoder_options: Mapping[str, str] | None = None,
    copy_streams: bool = True,
    strict: bool = False,
) -> Writer:
    """Writes a video of frames such as `like` gives: of its size, format, rate and facts, with the sound,
    subtitles and chapters of its file unless `copy_streams` is false.

    The path's ending chooses the container. `encoder`, `quality`, `preset`, `pixel_format` and
    `encoder_options` are those of the program (`--encoder` and so forth).

    What is lost on the way is a `UserWarning`; `strict` makes it an error. Raises `FileExistsError` unless
    `overwrite`, `OSError`, and `framepipe.Error`, in the program's sentences.

    >>> with framepipe.open("samples/clip-720p.mp4", end="3f") as reader:
    ...     with framepipe.write(out / "negative.mp4", like=reader) as writer:
    ...         for frame in reader:
    ...             writer.write(frame.with_rgb(255 - frame.to_rgb()))
    """
    if not isinstance(like, Reader):
        raise TypeError(f"like must be a framepipe.Reader, and not {type(like).__name__}")
    writer = _framepipe.Writer(
        os.fspath(path),
        like._reader,
        overwrite=overwrite,
        encoder=encoder,
        quality=quality,
        preset=preset,
        pixel_format=pixel_format,
        encoder_options=list((encoder_options or {}).items()),
        copy_streams=copy_streams,
        strict=strict,
    )
    return Writer(writer)
