"""The program that comes with the package."""

import os
import pathlib
import sys
from typing import NoReturn

from ._framepipe import Error


def path() -> str:
    """Where the program is."""
    program = pathlib.Path(__file__).with_name("bin") / "framepipe"
    if not program.is_file():
        raise Error(f"the program is missing ({program}); install the package anew: pip install ./python")
    return str(program)


def main() -> NoReturn:
    """Becomes the program, with the arguments of this process."""
    program = path()
    os.execv(program, [program, *sys.argv[1:]])
