"""What pip calls to build the package: maturin, after the program has been built and put beside the module.

Both are made of the same build of the library. `pip install ./python` builds a release;
`--config-settings build-args="--profile dev"` a quick one for tests.
"""

import json
import pathlib
import shlex
import shutil
import subprocess
from typing import Any

import maturin  # type: ignore[import-untyped]
from maturin import get_requires_for_build_wheel, prepare_metadata_for_build_wheel  # noqa: F401

Settings = dict[str, Any] | None

HERE = pathlib.Path(__file__).resolve().parent


def profile(settings: Settings) -> str:
    """The profile that the build arguments name."""
    words = (settings or {}).get("build-args", [])
    words = shlex.split(words) if isinstance(words, str) else list(words)
    return words[words.index("--profile") + 1] if "--profile" in words else "release"


def bring_program(settings: Settings) -> None:
    """Builds the program and copies it into the package, from where maturin takes it."""
    command = ["cargo", "build", "--locked", "--bin", "framepipe", "--profile", profile(settings)]
    command += ["--message-format", "json-render-diagnostics"]
    built = subprocess.run(command, cwd=HERE.parent, stdout=subprocess.PIPE, text=True, check=True)
    messages = map(json.loads, built.stdout.splitlines())
    program = [path for message in messages if (path := message.get("executable"))][-1]
    target = HERE / "framepipe" / "bin" / "framepipe"
    target.parent.mkdir(exist_ok=True)
    target.unlink(missing_ok=True)
    shutil.copy2(program, target)
    if profile(settings) == "release":
        # What a debugger would want is three quarters of it.
        subprocess.run(["strip", target], check=True)


def build_wheel(folder: str, settings: Settings = None, metadata: str | None = None) -> str:
    """A wheel with module and program."""
    bring_program(settings)
    return str(maturin.build_wheel(folder, settings, metadata))
