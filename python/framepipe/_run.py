"""Whole files: the program's main job, in a process of its own."""

from __future__ import annotations

import json
import math
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from . import _program
from ._arrays import Filters, specs
from ._framepipe import Error

Option: TypeAlias = str | int | float | os.PathLike[str] | bool | None

# Options of the program that are no options here, and why.
_OTHERS = {
    "report": "the report is what it gives back",
    "progress": "progress= takes a function",
    "filter": "filters= takes them",
    "dry_run": "nothing would be done, and there would be no report",
    "help": "framepipe filter --help lists the options",
}

# An option of the program in one of its sentences.
_OPTION = re.compile(r"(?<![\w/-])--([a-z][a-z-]*[a-z])")


def run(
    input: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    filters: Filters,
    progress: Callable[[dict[str, Any]], object] | None = None,
    **options: Option | Sequence[Option],
) -> dict[str, Any]:
    """Filters a video, an image or a folder of images into another, as `framepipe filter` does.

    `options` are those of the program, with underscores for dashes: `quality=18`, `start="0:05"`,
    `overwrite=True`, `engine="cuda"`, `region=["200x100+10+20", "0:05.. 64x64+0+0"]`. False and `None` leave
    an option out; a sequence gives it several times. `framepipe filter --help` lists them.

    `progress` is called each second and at the end with a dictionary (docs/schemas.md), such as
    `{"frames": 250, "left_seconds": 3.5, ...}`. What it raises ends the run, and so does Ctrl-C: nothing is
    left under the output's name, unless `on_interrupt="keep"`. What the last call raises, whose `state` is
    "ended", comes too late: the finished output stays. The program goes on by itself where this process is
    killed by a signal that Python does not turn into an exception, such as SIGTERM.

    Gives back the report (docs/schemas.md): what was done, and where the time went. Its warnings are
    raised as `UserWarning`; `strict=True` makes them errors.

    Raises `ValueError` where an option cannot be, `FileExistsError` where the output is there and `overwrite`
    is not set, and `framepipe.Error` where the run fails otherwise, in the program's own sentence.

    >>> clip, soft = "samples/clip-720p.mp4", out / "soft.mp4"
    >>> report = framepipe.run(clip, soft, filters="gaussian:sigma=3", end="5f")
    >>> report["frames"], report["ending"]
    (5, 'complete')
    """
    with tempfile.TemporaryDirectory(prefix="framepipe-") as folder:
        report, said = pathlib.Path(folder, "report.json"), pathlib.Path(folder, "said")
        come, go = os.pipe()
        command = [_program.path(), "filter", "--report", str(report), "--progress", f"json:{go}"]
        command += _words(specs(filters), options)
        command += ["--", os.fspath(input), os.fspath(output)]
        with open(come, encoding="utf-8") as objects, open(said, "wb") as stderr:
            try:
                # Signals of the terminal come to this process alone, which passes them on as it sees fit.
                process = subprocess.Popen(
                    command, stderr=stderr, pass_fds=(go,), start_new_session=True
                )
            finally:
                os.close(go)
            with process:
                try:
                    for line in objects:
                        if progress is not None:
                            progress(json.loads(line))
                    process.wait()
                except BaseException:
                    keeps = options.get("on_interrupt") == "keep"
                    process.send_signal(signal.SIGINT if keeps else signal.SIGTERM)
                    process.wait()
                    raise
        if process.returncode != 0:
            raise _error(said.read_text(errors="replace"), process.returncode)
        result: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    for warning in result["warnings"]:
        warnings.warn(warning, stacklevel=2)
    return result


def _words(filters: list[str], options: dict[str, Option | Sequence[Option]]) -> list[str]:
    words = [f"--filter={spec}" for spec in filters]
    for name, value in options.items():
        if name in _OTHERS:
            raise TypeError(f"run() does not take {name}; {_OTHERS[name]}")
        option = "--" + name.replace("_", "-")
        each = [value] if isinstance(value, str) or not isinstance(value, Sequence) else value
        for one in each:
            if one is None or isinstance(one, (bool, np.bool_)):
                words += [option] if one else []
            else:
                words.append(f"{option}={_word(one)}")
    return words


def _word(value: str | float | os.PathLike[str]) -> str:
    """A value as the program reads it: a number without an exponent."""
    if isinstance(value, float) and math.isfinite(value):
        return np.format_float_positional(value, trim="-")
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _keyword(option: str) -> str:
    """The argument of `run` for an option of the program."""
    name = {"filter": "filters"}.get(option, option.replace("-", "_"))
    return f"{name}=True" if name in {"overwrite", "strict"} else name


def _error(said: str, code: int) -> Exception:
    """The program's last word as an exception."""
    # Behind notes and warnings, at the beginning of a line; what follows may have several.
    _, found, sentence = ("\n" + said).rpartition("\nerror: ")
    if not found:
        return Error(f"the program ended with {code}: {said.strip() or 'it said nothing'}")
    sentence = sentence.partition("\n\nUsage:")[0].partition("\n\nFor more information")[0].strip()
    is_there = "exists" in sentence and "pass --overwrite" in sentence
    sentence = _OPTION.sub(lambda option: _keyword(option[1]), sentence)
    if is_there:
        return FileExistsError(sentence)
    return ValueError(sentence) if code == 2 else Error(sentence)
