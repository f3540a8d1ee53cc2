"""Arrays on a card, on the stand-in for one that tests/standin builds: card.py in a process that finds it."""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TEXTS = ROOT / "tests" / "standin"
LIBRARIES = {
    "libcuda.so": ["driver.cpp", "block.cpp", "memory.cpp", "queue.cpp"],
    "libnvrtc.so": ["nvrtc.cpp"],
}


def compiler():
    names = ["clang++", *(f"clang++-{version}" for version in range(30, 10, -1))]
    return next(filter(None, map(shutil.which, names)), None)


def build(clang, folder):
    """The stand-in's libraries, built as tests/standin/mod.rs does it."""
    texts = hashlib.sha256(str(TEXTS).encode())
    for text in sorted(path for path in TEXTS.iterdir() if path.suffix != ".md"):
        texts.update(text.read_bytes())
    libraries = folder / texts.hexdigest()[:16]
    libraries.mkdir(parents=True, exist_ok=True)
    command = [clang, "-std=c++17", "-O2", "-shared", "-fPIC", "-pthread", "-Wl,-z,nodelete", "-ldl"]
    command += [f'-DSTANDIN_COMPILER="{clang}"', f'-DSTANDIN_FOLDER="{TEXTS}"']
    for name, sources in LIBRARIES.items():
        if not (libraries / name).exists():
            part = libraries / f"{name}.{os.getpid()}"
            subprocess.run([*command, *(TEXTS / source for source in sources), "-o", part], check=True)
            part.rename(libraries / name)
    return libraries


@pytest.fixture(scope="module")
def stand_in():
    clang = compiler()
    if clang is None:
        assert os.environ.get("CI") != "true", "in CI the stand-in for a card needs clang++"
        pytest.skip("there is no clang++ to build the stand-in for a card with")
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "tmp" / "standin"
    libraries = build(clang, target / "python")
    compiled = target / "compiled"
    compiled.mkdir(exist_ok=True)

    def run(script, *arguments, **settings):
        paths = [str(libraries), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
        environment = os.environ | {
            "LD_LIBRARY_PATH": ":".join(paths),
            "FRAMEPIPE_STANDIN_CACHE": str(compiled),
            "XDG_CACHE_HOME": str(target / "python-cache"),
            **{f"FRAMEPIPE_STANDIN_{name}": str(value) for name, value in settings.items()},
        }
        command = [sys.executable, *script, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)

    return run


# From a card that does all at once to one that does nothing until it must.
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_arrays_on_a_card(stand_in, tmp_path, seed):
    report = tmp_path / "report"
    only = [] if seed == 1 else ["--only", "streams"]
    done = stand_in([HERE / "card.py", "--few-kernels"], *only, SEED=seed, REPORT=report)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "complaint" not in report.read_text()


def test_a_wait_that_is_left_out_is_noticed(stand_in):
    """Calls on different streams share the filter's memory: without the streams' waits results are wrong."""
    ends = []
    for seed in (2, 3, 4, 6, 7, 8, 10, 11, 12):
        settings = {"SEED": seed, "IGNORE": "cuStreamWaitEvent"}
        ends.append(stand_in([HERE / "card.py", "--only", "streams"], **settings).returncode)
        if ends[-1] != 0:
            break
    assert any(ends)
