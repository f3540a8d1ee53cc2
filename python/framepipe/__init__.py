"""Blurs, sharpens and finds edges in arrays, pictures and videos, exactly and fast.

>>> import numpy
>>> import framepipe
>>> picture = numpy.zeros((48, 64, 3), numpy.uint8)
>>> picture[24, 32] = 255
>>> framepipe.filter(picture, "gaussian:sigma=2")[24, 32]
array([10, 10, 10], dtype=uint8)

`filter` is for arrays, `open` and `write` for the frames of videos, `run` for whole files. Filters are named
as the program names them; `masks` lists them, and `BORDERS` what may be assumed outside a picture. Results
are the program's, bit for bit, whatever the engine, the number of threads and the machine.
"""

from ._arrays import BORDERS, Mask, filter, masks
from ._card import CardArray
from ._framepipe import Error, __version__
from ._run import run
from ._video import Colour, Frame, Reader, Writer, open, write

__all__ = [
    "BORDERS",
    "CardArray",
    "Colour",
    "Error",
    "Frame",
    "Mask",
    "Reader",
    "Writer",
    "__version__",
    "filter",
    "masks",
    "open",
    "run",
    "write",
]
